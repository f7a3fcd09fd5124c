// Compression of answers. Any thread; each keeps one compressor of its own.
#pragma once

#include <string>
#include <string_view>

namespace comfyd::net {

// True when an Accept-Encoding header allows gzip, by name or by '*', with a weight above 0.
bool accepts_gzip(std::string_view accept_encoding);

// Text and JSON, but no event stream, which must not wait in a compressor.
bool is_compressible(std::string_view content_type);

std::string gzip(std::string_view data);

}  // namespace comfyd::net
