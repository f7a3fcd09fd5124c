// 8-bit pixels to picture files. Holds no state. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/pictures/reader.hpp"

namespace comfyd::engine::pictures {

struct Pixels {
    const std::uint8_t* data = nullptr;  // rows of width * channels without gaps
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 3;  // 3: RGB, 4: RGBA
};

// `quality` 1 to 100 as in libjpeg. Alpha is left out.
Outcome<std::string> encode_jpeg(const Pixels& pixels, int quality);

struct AvifOptions {
    int quality = 60;  // 1 to 100
    bool lossless = false;
};
// Alpha becomes a second picture of the file, as in every AVIF.
Outcome<std::string> encode_avif(const Pixels& pixels, const AvifOptions& options);

struct WebpOptions {
    bool lossless = false;
    int quality = 80;  // 0 to 100
    int method = 4;    // 0: fast, 6: small
};
// Asks `stopped` now and then and ends early when it says so.
Outcome<std::string> encode_webp(
    const Pixels& pixels,
    const WebpOptions& options,
    const std::function<bool()>& stopped = [] { return false; }
);

// Pixels of picture `index`; valid until the next call.
using FrameSource = std::function<Pixels(std::size_t index)>;
// One picture after the other, each for `duration_ms`, forever. `exif`: a whole EXIF chunk, or
// empty. Asks `stopped` as above.
Outcome<std::string> encode_webp_animation(
    std::size_t count,
    const FrameSource& frame,
    int duration_ms,
    const WebpOptions& options,
    std::string_view exif,
    const std::function<bool()>& stopped
);

}  // namespace comfyd::engine::pictures
