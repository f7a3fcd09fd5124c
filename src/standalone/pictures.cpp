#include "standalone/pictures.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "engine/pictures/encode.hpp"
#include "engine/pictures/png.hpp"
#include "engine/pictures/reader.hpp"
#include "standalone/shrink.hpp"

namespace comfyd::standalone {
namespace {

namespace pictures = engine::pictures;

constexpr std::size_t kPixelsMax = 128ULL * 1024 * 1024;
constexpr int kPngLevel = 4;

std::function<bool()> out_of_time(std::chrono::nanoseconds time_max = kPictureTimeMax) {
    return [end = Deadline::in(time_max)] { return end.has_passed(); };
}

Result<pictures::Bitmap> decode(std::string_view file, const std::function<bool()>& stopped) {
    auto bitmap = pictures::decode_rgba(file, kPixelsMax, stopped);
    if (stopped()) {
        return fail(Code::invalid_argument, "the picture takes too long to read");
    }
    if (!bitmap) {
        return fail(Code::invalid_argument, "not a picture: " + bitmap.error().text);
    }
    return std::move(*bitmap);
}

std::vector<std::uint8_t> without_alpha(const std::vector<std::uint8_t>& rgba) {
    std::vector<std::uint8_t> rgb(rgba.size() / 4 * 3);
    for (std::size_t from = 0, to = 0; from + 3 < rgba.size(); from += 4, to += 3) {
        rgb[to] = rgba[from];
        rgb[to + 1] = rgba[from + 1];
        rgb[to + 2] = rgba[from + 2];
    }
    return rgb;
}

template <class Encoded>
Result<std::string> checked(Encoded encoded) {
    if (!encoded) {
        return fail(
            Code::invalid_argument, "the picture cannot be written: " + encoded.error().text
        );
    }
    return std::move(*encoded);
}

}  // namespace

Result<std::string> convert_picture(
    std::string_view file, const PictureForm& form, std::chrono::nanoseconds time_max
) {
    const auto stopped = out_of_time(time_max);
    auto bitmap = decode(file, stopped);
    if (!bitmap) {
        return fail(std::move(bitmap.error()));
    }
    if (form.longest_side > 0) {
        shrink(*bitmap, static_cast<std::size_t>(form.longest_side));
    }
    std::size_t channels = 4;
    if (form.channel == Channel::alpha) {
        for (std::size_t i = 0; i + 3 < bitmap->rgba.size(); i += 4) {
            bitmap->rgba[i] = bitmap->rgba[i + 1] = bitmap->rgba[i + 2] = 0;
        }
    } else if (form.channel == Channel::rgb || form.format == PictureFormat::jpeg ||
               !bitmap->has_alpha) {
        bitmap->rgba = without_alpha(bitmap->rgba);
        channels = 3;
    }
    if (form.format == PictureFormat::png) {
        return checked(engine::encode_png(
            engine::PngBytes{bitmap->rgba.data(), bitmap->width, bitmap->height, channels},
            kPngLevel,
            {}
        ));
    }
    const pictures::Pixels pixels{bitmap->rgba.data(), bitmap->width, bitmap->height, channels};
    if (form.format == PictureFormat::jpeg) {
        return checked(pictures::encode_jpeg(pixels, form.quality));
    }
    pictures::WebpOptions options;
    options.quality = form.quality;
    return checked(pictures::encode_webp(pixels, options, stopped));
}

Result<std::string> replace_alpha(std::string_view picture, std::string_view mask) {
    const auto stopped = out_of_time();
    auto below = decode(picture, stopped);
    if (!below) {
        return fail(std::move(below.error()));
    }
    auto above = decode(mask, stopped);
    if (!above) {
        return fail(std::move(above.error()));
    }
    for (std::size_t y = 0; y < below->height; ++y) {
        const std::size_t row = y * above->height / below->height * above->width;
        for (std::size_t x = 0; x < below->width; ++x) {
            const std::size_t from = row + x * above->width / below->width;
            below->rgba[4 * (y * below->width + x) + 3] = above->rgba[4 * from + 3];
        }
    }
    return checked(engine::encode_png(
        engine::PngBytes{below->rgba.data(), below->width, below->height, 4},
        kPngLevel,
        engine::read_png_texts(picture)
    ));
}

}  // namespace comfyd::standalone
