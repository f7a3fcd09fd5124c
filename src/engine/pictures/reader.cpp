#include "engine/pictures/reader.hpp"

#include <array>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/pictures/formats.hpp"
#include "engine/pictures/png_chunks.hpp"

namespace comfyd::engine::pictures {
namespace {

bool is_animated_webp(std::string_view file) {
    // RIFF size WEBP, then the extended header with its flags.
    constexpr unsigned char kAnimation = 0x02;
    return file.size() >= 21 && file.substr(12, 4) == "VP8X" &&
           (static_cast<unsigned char>(file[20]) & kAnimation) != 0;
}

// Deep colour is converted by FFmpeg, as in ComfyUI, whose last bits depend on its way.
bool is_deep_colour(std::string_view png) {
    constexpr std::size_t kDepth = 24;
    constexpr std::size_t kColourType = 25;
    constexpr char kTruecolour = 2;
    constexpr char kTruecolourAlpha = 6;
    return png.size() > kColourType && png[kDepth] == 16 &&
           (png[kColourType] == kTruecolour || png[kColourType] == kTruecolourAlpha);
}

}  // namespace

std::optional<Format> sniff(std::string_view file) {
    if (file.starts_with(kPngSignature)) {
        return is_animated_png(file) ? Format::apng : Format::png;
    }
    if (file.starts_with("\xff\xd8\xff")) {
        return Format::jpeg;
    }
    if (file.starts_with("GIF87a") || file.starts_with("GIF89a")) {
        return Format::gif;
    }
    if (file.size() >= 16 && file.starts_with("RIFF") && file.substr(8, 4) == "WEBP") {
        return is_animated_webp(file) ? Format::animated_webp : Format::webp;
    }
    if (file.starts_with("BM")) {
        return Format::bmp;
    }
    if (file.starts_with(std::string_view("II*\0", 4)) ||
        file.starts_with(std::string_view("MM\0*", 4))) {
        return Format::tiff;
    }
    return std::nullopt;
}

tl::unexpected<Failure> refuse(std::string text) {
    return tl::unexpected(Failure{std::move(text)});
}

std::uint64_t pixels_max_of_any() {
    return std::uint64_t{kSideMax} * kSideMax;
}

Outcome<> check_size(std::uint64_t width, std::uint64_t height, std::uint64_t pixels_max) {
    if (width == 0 || height == 0) {
        return refuse("it has no pixels");
    }
    if (width > kSideMax || height > kSideMax || width * height > pixels_max) {
        return refuse(
            "it measures " + std::to_string(width) + " x " + std::to_string(height) + "; at most " +
            std::to_string(kSideMax) + " x " + std::to_string(kSideMax) + " and " +
            std::to_string(pixels_max) + " pixels can be loaded"
        );
    }
    return {};
}

Outcome<std::unique_ptr<Reader>> open(std::string_view file, std::function<bool()> stopped) {
    const auto format = sniff(file);
    if (!format) {
        return refuse(
            "it is not a picture in a known format; PNG, JPEG, GIF, WebP, BMP and TIFF can be "
            "loaded"
        );
    }
    if (*format == Format::png && !is_deep_colour(file)) {
        return open_png_reader(file, std::move(stopped));
    }
    if (*format == Format::png) {
        auto deep = open_deep_png_reader(file, stopped);
        if (!deep || *deep != nullptr) {
            return deep;
        }
    }
    if (*format == Format::animated_webp) {
        return open_webp_reader(file, std::move(stopped));
    }
    return open_ffmpeg_reader(file, *format, std::move(stopped));
}

Outcome<Bitmap> decode_rgba(
    std::string_view file, std::size_t pixels_max, const std::function<bool()>& stopped
) {
    const auto format = sniff(file);
    if (!format) {
        return refuse("it is not a picture in a known format");
    }
    switch (*format) {
        case Format::png:
        case Format::apng:
            return decode_rgba_png(file, pixels_max, stopped);
        case Format::webp:
        case Format::animated_webp:
            return decode_rgba_webp(file, pixels_max);
        default:
            return decode_rgba_ffmpeg(file, *format, pixels_max);
    }
}

Outcome<std::unique_ptr<Animation>> open_animation(std::string_view file, std::size_t pixels_max) {
    const auto format = sniff(file);
    if (format == Format::webp || format == Format::animated_webp) {
        return open_webp_animation(file, pixels_max);
    }
    if (format == Format::gif || format == Format::apng) {
        return open_ffmpeg_animation(file, *format, pixels_max);
    }
    return refuse("it is no animation that can be read: these are WebP, GIF and animated PNG");
}

}  // namespace comfyd::engine::pictures
