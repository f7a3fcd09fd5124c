// PNG files as a row of chunks, without a decoder. Pure; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace comfyd::engine::pictures {

inline constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);

// REQUIRES: begins with the signature.
bool is_animated_png(std::string_view file);

// The same picture without texts and colour profiles, which are compressed: FFmpeg would unpack all
// of them, however large they become. nullptr: the file has none.
std::unique_ptr<const std::string> without_texts(std::string_view file);

}  // namespace comfyd::engine::pictures
