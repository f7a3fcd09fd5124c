#include "app/config/setting_kinds.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

namespace comfyd::app {

std::string without_password(std::string address) {
    constexpr std::string_view kHidden = "***";
    const std::size_t scheme = address.find("://");
    const std::size_t user = scheme == std::string::npos ? 0 : scheme + 3;
    const std::size_t at = address.find_last_of('@', address.find_first_of("/?", user));
    const std::size_t colon = address.find(':', user);
    if (at != std::string::npos && at > user && colon < at) {
        address.replace(colon + 1, at - colon - 1, kHidden);
    }
    constexpr std::string_view kNamed = "password=";
    if (const std::size_t named = address.find(kNamed); named != std::string::npos) {
        const std::size_t value = named + kNamed.size();
        address.replace(value, std::min(address.find('&', value), address.size()) - value, kHidden);
    }
    return address;
}

Setting text(std::string key, std::string help, std::string Config::* member) {
    return {
        key,
        std::move(help),
        [member](Config& config, const std::string& value) -> Result<> {
            config.*member = value;
            return {};
        },
        [member](const Config& config) {
            YAML::Emitter out;
            out << (config.*member);
            return config.*member == "" ? std::string("\"\"") : std::string(out.c_str());
        }
    };
}

Setting secret(std::string key, std::string help, std::string Config::* member) {
    Setting row = text(std::move(key), std::move(help), member);
    row.show = [member](const Config& config) {
        return std::string((config.*member).empty() ? "\"\"" : "\"***\"");
    };
    return row;
}

Setting address(std::string key, std::string help, std::string Config::* member) {
    Setting row = text(std::move(key), std::move(help), member);
    row.show = [member](const Config& config) {
        return "\"" + without_password(config.*member) + "\"";
    };
    return row;
}

Setting flag(std::string key, std::string help, bool Config::* member) {
    return {
        key,
        std::move(help),
        [key, member](Config& config, const std::string& value) -> Result<> {
            if (value == "true" || value == "1" || value == "yes" || value == "on") {
                config.*member = true;
            } else if (value == "false" || value == "0" || value == "no" || value == "off") {
                config.*member = false;
            } else {
                return invalid("'" + key + "' must be true or false, not '" + value + "'");
            }
            return {};
        },
        [member](const Config& config) { return std::string(config.*member ? "true" : "false"); }
    };
}

Setting decimal(
    std::string key, std::string help, double Config::* member, double min, double max
) {
    return {
        key,
        std::move(help),
        [key, member, min, max](Config& config, const std::string& text) -> Result<> {
            double value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() ||
                !(value >= min && value <= max)) {
                return invalid(
                    "'" + key + "' must be a number from " + show_number(min) + " to " +
                    show_number(max) + ", not '" + text + "'"
                );
            }
            config.*member = value;
            return {};
        },
        [member](const Config& config) { return show_number(config.*member); }
    };
}

std::vector<std::string> split_commas(const std::string& list) {
    std::vector<std::string> items;
    std::stringstream stream(list);
    for (std::string item; std::getline(stream, item, ',');) {
        const auto first = item.find_first_not_of(" \t");
        const auto last = item.find_last_not_of(" \t");
        if (first != std::string::npos) {
            items.push_back(item.substr(first, last - first + 1));
        }
    }
    return items;
}

Setting words(std::string key, std::string help, std::vector<std::string> Config::* member) {
    return {
        std::move(key),
        std::move(help),
        [member](Config& config, const std::string& value) -> Result<> {
            config.*member = split_commas(value);
            return {};
        },
        [member](const Config& config) {
            YAML::Emitter out;
            out << YAML::Flow << (config.*member);
            return std::string(out.c_str());
        },
        true
    };
}

}  // namespace comfyd::app
