// Choices that are taken out of a class before anybody is shown it. Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/json.hpp"

namespace comfyd::workflow {

// The class without the choices that are `hidden`; nullopt: it has none. `info`: an entry of
// /object_info.
std::optional<json::object> without_choices(
    const json::object& info, const std::function<bool(std::string_view)>& hidden
);

}  // namespace comfyd::workflow
