// What a file's own headers say of it. Nothing is decoded or unpacked, nothing is allocated by what
// a file says, and every walk ends: so this much may also be read in the gateway. Pure; any thread.
#pragma once

#include <string_view>

#include "media/facts.hpp"

namespace comfyd::media {

// `name` and `content_type` decide where the bytes say nothing. Of videos and sounds only the kind
// and the format are found so; the rest takes a demuxer (media/moving.hpp).
Facts read_headers(std::string_view file, std::string_view name, std::string_view content_type);

}  // namespace comfyd::media
