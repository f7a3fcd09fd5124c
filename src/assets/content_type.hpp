// What kind of content a file is, for uploads that do not say.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace comfyd::assets {

// How many of the first bytes guess_content_type() looks at.
inline constexpr std::size_t kSniffBytes = 4096;

// By the name's extension, else by the first bytes, else "application/octet-stream". `is_whole`
// says that `first_bytes` is all of the content.
std::string guess_content_type(
    std::string_view file_name, std::string_view first_bytes, bool is_whole
);

}  // namespace comfyd::assets
