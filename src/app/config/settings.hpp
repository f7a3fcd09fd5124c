// The table of settings: one row each, from which reading, checking and help follow.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.hpp"
#include "base/error.hpp"

namespace comfyd::app {

struct Setting {
    std::string key;  // "log.level"
    std::string help;
    std::function<Result<>(Config&, const std::string&)> set;
    std::function<std::string(const Config&)> show;
    bool is_list = false;  // of words; in YAML a sequence, elsewhere separated by commas
};

const std::vector<Setting>& settings();

// The settings that are lists; each has its own YAML form.
inline constexpr std::array<std::string_view, 9> kLists{
    "workers",
    "pools",
    "tenants",
    "models",
    "stores",
    "auth.keys",
    "cors.origins",
    "notify.channels",
    "notify.rules",
};

// "6.9GB", "512 MiB" or plain bytes. nullopt: no size above 0.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// As the configuration shows it.
std::string show_number(double number);

// Code::config_invalid.
tl::unexpected<Error> invalid(std::string message);
Result<> unknown_key(const std::string& key);  // names the nearest one
// Sets one setting from text; lists are separated by commas.
Result<> set_value(Config& config, const std::string& key, const std::string& value);
// From 1 to 64 small letters, digits, '.', '_' and '-'.
bool is_pool_name(std::string_view name);
Result<> add_worker(Config& config, WorkerSetting worker);
// "log.level" -> "COMFYD_LOG_LEVEL"
std::string environment_name(std::string_view key);

}  // namespace comfyd::app
