// Videos and sounds: what they are, and a picture of a video. By FFmpeg's demuxers and decoders,
// which are named and never guessed; nothing but the file itself can be opened. For a process that
// may break. Holds no state.
#pragma once

#include <functional>
#include <string_view>

#include "engine/pictures/reader.hpp"
#include "media/facts.hpp"

namespace comfyd::media {

// `facts`: what the headers say, with a format. The rest is added.
engine::pictures::Outcome<Facts> inspect_moving(std::string_view file, Facts facts);

// The key frame near the first second that shows something, turned as the file asks for.
engine::pictures::Outcome<engine::pictures::Bitmap> poster_of(
    std::string_view file,
    const Facts& facts,
    std::size_t pixels_max,
    const std::function<bool()>& stopped
);

}  // namespace comfyd::media
