// 8-bit pixels to picture files. Holds no state. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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

// A picture of an animation and how long it is shown.
struct TimedPixels {
    Pixels pixels;
    int duration_ms = 0;
};
// The pictures of an animation one after the other, all of one shape; each is valid until the next
// call. Nullopt after the last.
using FrameStream = std::function<Outcome<std::optional<TimedPixels>>()>;

// `quality` 1 to 100 as in libjpeg. Alpha is left out.
Outcome<std::string> encode_jpeg(const Pixels& pixels, int quality);

struct AvifOptions {
    int quality = 60;  // 1 to 100
    bool lossless = false;
};
// Alpha becomes a second picture of the file, as in every AVIF.
Outcome<std::string> encode_avif(const Pixels& pixels, const AvifOptions& options);
// Shown forever. Asks `stopped` before each picture.
Outcome<std::string> encode_avif_animation(
    const FrameStream& next, const AvifOptions& options, const std::function<bool()>& stopped
);

struct WebpOptions {
    bool lossless = false;
    int quality = 80;  // 0 to 100
    int method = 4;    // 0: fast, 6: small
};
// `exif`: a whole EXIF chunk, or empty. Asks `stopped` now and then and ends early when it says so.
Outcome<std::string> encode_webp(
    const Pixels& pixels,
    const WebpOptions& options,
    const std::function<bool()>& stopped = [] { return false; },
    std::string_view exif = {}
);
// One picture alone becomes a still one. `loops`: how often it is shown; 0: forever.
Outcome<std::string> encode_webp_animation(
    const FrameStream& next,
    int loops,
    const WebpOptions& options,
    std::string_view exif,
    const std::function<bool()>& stopped
);

}  // namespace comfyd::engine::pictures
