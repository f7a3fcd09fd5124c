// How comfyd's own engine learns whose a prompt is that comes through a gateway: in its extra_data.
#pragma once

#include <string_view>

namespace comfyd::comfy {

// The name of the owner's folder in the folders output and temp. Owners share no cached results.
inline constexpr std::string_view kOwnerKey = "comfyd_owner";

}  // namespace comfyd::comfy
