// The kinds of rows in the table of settings: how the text of each is read, checked and shown.
#pragma once

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "app/config/settings.hpp"

namespace comfyd::app {

Setting text(std::string key, std::string help, std::string Config::* member);
// An address as it may be shown and logged.
std::string without_password(std::string address);

// Its value is not shown.
Setting secret(std::string key, std::string help, std::string Config::* member);
// An address that is shown without its password.
Setting address(std::string key, std::string help, std::string Config::* member);
Setting flag(std::string key, std::string help, bool Config::* member);
Setting decimal(std::string key, std::string help, double Config::* member, double min, double max);
Setting words(std::string key, std::string help, std::vector<std::string> Config::* member);

// The rows of serving_settings.cpp.
std::vector<Setting> serving_settings();
// What the fleet may cost: rows of scaling_file.cpp.
std::vector<Setting> budget_settings();
// The rows of tier_settings.cpp.
std::vector<Setting> tier_settings();
// The rows of token_settings.cpp.
std::vector<Setting> token_settings();
// The rows of login_settings.cpp.
std::vector<Setting> login_settings();
// The rows of guard_settings.cpp.
std::vector<Setting> guard_settings();
// The rows of media_settings.cpp.
std::vector<Setting> media_settings();
// The rows of model_settings.cpp.
std::vector<Setting> model_settings();
// The rows of result_settings.cpp.
std::vector<Setting> result_settings();
// The rows of retry_settings.cpp.
std::vector<Setting> retry_settings();
// The rows of trust_settings.cpp.
std::vector<Setting> trust_settings();
// The rows of cluster_settings.cpp.
std::vector<Setting> cluster_settings();
// The rows of comfyui_settings.cpp.
std::vector<Setting> comfyui_settings();

std::vector<std::string> split_commas(const std::string& list);

template <class Number>
Setting number(
    std::string key, std::string help, Number Config::* member, std::int64_t min, std::int64_t max
) {
    return {
        key,
        std::move(help),
        [key, member, min, max](Config& config, const std::string& text) -> Result<> {
            std::int64_t value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || value < min ||
                value > max) {
                return invalid(
                    "'" + key + "' must be a whole number from " + std::to_string(min) + " to " +
                    std::to_string(max) + ", not '" + text + "'"
                );
            }
            config.*member = static_cast<Number>(value);
            return {};
        },
        [member](const Config& config) { return std::to_string(config.*member); }
    };
}

template <class Enum>
Setting choice(
    std::string key,
    std::string help,
    Enum Config::* member,
    std::vector<std::pair<std::string, Enum>> words
) {
    return {
        key,
        std::move(help),
        [key, member, words](Config& config, const std::string& value) -> Result<> {
            std::string known;
            for (const auto& [word, meaning] : words) {
                if (word == value) {
                    config.*member = meaning;
                    return {};
                }
                known += (known.empty() ? "" : ", ") + word;
            }
            return invalid("'" + key + "' must be one of " + known + ", not '" + value + "'");
        },
        [member, words](const Config& config) {
            for (const auto& [word, meaning] : words) {
                if (meaning == config.*member) {
                    return word;
                }
            }
            return std::string();
        }
    };
}

}  // namespace comfyd::app
