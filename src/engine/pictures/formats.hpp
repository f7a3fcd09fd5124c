// The readers behind open(), one for each library, and what they share. Inside this folder only.
#pragma once

#include <optional>
#include <string_view>

#include "engine/pictures/animation.hpp"
#include "engine/pictures/reader.hpp"

namespace comfyd::engine::pictures {

enum class Format { png, apng, jpeg, gif, webp, animated_webp, bmp, tiff };

std::optional<Format> sniff(std::string_view file);

tl::unexpected<Failure> refuse(std::string text);
// Sides above the engine's limit, or more pixels than `pixels_max`, are a Failure.
Outcome<> check_size(std::uint64_t width, std::uint64_t height, std::uint64_t pixels_max);
// Of any picture: the largest side squared.
std::uint64_t pixels_max_of_any();

// Still PNG, except deep colour.
Outcome<std::unique_ptr<Reader>> open_png_reader(
    std::string_view file, std::function<bool()> stopped
);
// Still PNG of 16 bits in colour. nullptr: one colour is transparent, which FFmpeg knows about.
Outcome<std::unique_ptr<Reader>> open_deep_png_reader(
    std::string_view file, std::function<bool()> stopped
);
Outcome<std::unique_ptr<Reader>> open_ffmpeg_reader(
    std::string_view file, Format format, std::function<bool()> stopped
);
Outcome<std::unique_ptr<Reader>> open_webp_reader(
    std::string_view file, std::function<bool()> stopped
);

Outcome<Bitmap> decode_rgba_png(
    std::string_view file, std::size_t pixels_max, const std::function<bool()>& stopped
);
Outcome<Bitmap> decode_rgba_ffmpeg(std::string_view file, Format format, std::size_t pixels_max);
Outcome<Bitmap> decode_rgba_webp(std::string_view file, std::size_t pixels_max);

Outcome<std::unique_ptr<Animation>> open_webp_animation(
    std::string_view file, std::size_t pixels_max
);
// GIF and animated PNG.
Outcome<std::unique_ptr<Animation>> open_ffmpeg_animation(
    std::string_view file, Format format, std::size_t pixels_max
);

}  // namespace comfyd::engine::pictures
