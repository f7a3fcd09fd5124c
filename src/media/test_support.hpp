// Files for the tests of this room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/pictures/animation.hpp"
#include "engine/pictures/reader.hpp"

namespace comfyd::media::test {

using engine::pictures::Bitmap;

// Colours that change softly over the picture; with alpha from left to right.
Bitmap gradient(std::size_t width, std::size_t height, bool has_alpha = false);

using Texts = std::vector<std::pair<std::string, std::string>>;
std::string png(const Bitmap& picture, const Texts& texts = {});
std::string jpeg(const Bitmap& picture);
// With EXIF that asks for this turning.
std::string turned_jpeg(const Bitmap& picture, int orientation);
std::string webp(const Bitmap& picture, const Texts& texts = {});
// Blue grows from frame to frame; each is shown for 100 ms, the last for half a second.
std::string animated_webp(
    std::size_t width, std::size_t height, std::size_t frames, bool has_alpha = false
);
std::string animated_png(
    std::size_t width, std::size_t height, std::size_t frames, const Texts& texts = {}
);
// Each frame one pixel large, black and white in turn.
std::string gif(std::uint16_t width, std::uint16_t height, std::size_t frames);

// PNGs that say more than they hold: all rows of one colour, in `interlace` 0 or 1.
std::string flat_png(std::uint32_t width, std::uint32_t height, int interlace);
// Only a header of that size.
std::string png_header(std::uint32_t width, std::uint32_t height);

struct Video {
    const char* muxer = "mp4";
    int width = 64;
    int height = 48;
    int frames = 50;
    int fps = 25;
    int black_frames = 0;  // at its beginning
    Texts metadata{};
    bool has_sound = false;
};
std::string video(const Video& what);
std::string wav(int sample_rate, double seconds);

// The largest difference of a channel, transparent pixels left out.
int largest_difference(const Bitmap& a, const Bitmap& b);
// And the average one.
double mean_difference(const Bitmap& a, const Bitmap& b);

Bitmap decoded(std::string_view file);
// Of an animation.
std::vector<engine::pictures::Shown> all_decoded(std::string_view file);

}  // namespace comfyd::media::test
