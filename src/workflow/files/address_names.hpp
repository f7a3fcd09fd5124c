// The names of model files that were fetched from addresses in workflows:
// "from-<16 hex digits of the tenant><16 of the address>/name.safetensors". Workers show their
// files to everybody, so a name says whose it is: others are not shown such files and may not name
// them. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace comfyd::workflow {

// The folder of what this tenant has from there. `address`: with all that tells it from others.
std::string address_folder(std::string_view tenant, std::string_view address);
bool is_address_name(std::string_view name);
bool is_address_name_of(std::string_view name, std::string_view tenant);

// The class without such names among its choices; nullopt: it has none. `info`: an entry of
// /object_info.
std::optional<json::object> without_address_choices(const json::object& info);

}  // namespace comfyd::workflow
