// The table of settings: one row each, from which reading, checking and help follow.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.hpp"
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
inline constexpr std::array<std::string_view, 4> kLists{
    "workers", "tenants", "auth.keys", "cors.origins"
};

// As the configuration shows it.
std::string show_number(double number);

// Code::config_invalid.
tl::unexpected<Error> invalid(std::string message);
Result<> unknown_key(const std::string& key);  // names the nearest one
// Sets one setting from text; lists are separated by commas.
Result<> set_value(Config& config, const std::string& key, const std::string& value);
Result<> add_worker(Config& config, WorkerSetting worker);
// "log.level" -> "COMFYD_LOG_LEVEL"
std::string environment_name(std::string_view key);

}  // namespace comfyd::app
