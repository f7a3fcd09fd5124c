// What a provider's answers say, made fit to be shown: short, on one line, and without secrets,
// which some services repeat in their refusals. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd::fleet {

inline constexpr std::size_t kWordsBytesMax = 300;

// `text` is UTF-8, as out of JSON. Without `secrets` (base/secret_names.hpp).
std::string presentable(std::string_view text, const std::vector<std::string>& secrets = {});

// The same for bytes of any kind: whatever is not ASCII becomes '?'.
std::string excerpt_of(std::string_view bytes, const std::vector<std::string>& secrets = {});

}  // namespace comfyd::fleet
