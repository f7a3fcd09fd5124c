#include "app/pictures.hpp"

#include <vector>

#include "engine/pictures/encode.hpp"
#include "engine/pictures/reader.hpp"
#include "engine/png.hpp"

namespace comfyd::app {
namespace {

namespace pictures = engine::pictures;

constexpr std::size_t kPixelsMax = 256 * 1024 * 1024;
constexpr int kPngLevel = 4;  // as ComfyUI

tl::unexpected<Error> no_picture(const std::string& why) {
    return fail(Code::invalid_argument, "not a picture that can be shown: " + why);
}

std::vector<std::uint8_t> without_alpha(const pictures::Bitmap& bitmap) {
    std::vector<std::uint8_t> rgb;
    rgb.reserve(bitmap.width * bitmap.height * 3);
    for (std::size_t i = 0; i < bitmap.width * bitmap.height; ++i) {
        rgb.insert(rgb.end(), &bitmap.rgba[4 * i], &bitmap.rgba[4 * i] + 3);
    }
    return rgb;
}

Result<std::string> to_png(
    const std::vector<std::uint8_t>& bytes,
    std::size_t width,
    std::size_t height,
    std::size_t channels
) {
    std::vector<float> pixels(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        pixels[i] = static_cast<float>(bytes[i]) / 255.0F;
    }
    std::string file;
    const auto sink = [&file](const void* data, std::size_t size) {
        file.append(static_cast<const char*>(data), size);
        return true;
    };
    const auto encoded = engine::encode_png(
        {pixels.data(), width, height, channels}, kPngLevel, {}, sink, [] { return false; }
    );
    if (!encoded) {
        return no_picture(encoded.error().text);
    }
    return file;
}

}  // namespace

Result<std::string> convert_picture(const api::PictureRequest& request) {
    using Channel = api::PictureRequest::Channel;
    auto bitmap = pictures::decode_rgba(request.bytes, kPixelsMax);
    if (!bitmap) {
        return no_picture(bitmap.error().text);
    }
    if (request.channel == Channel::alpha) {
        // Black with the alpha of the picture.
        for (std::size_t i = 0; i < bitmap->rgba.size(); i += 4) {
            bitmap->rgba[i] = bitmap->rgba[i + 1] = bitmap->rgba[i + 2] = 0;
        }
        return to_png(bitmap->rgba, bitmap->width, bitmap->height, 4);
    }
    const bool keeps_alpha =
        bitmap->has_alpha && request.channel == Channel::rgba && request.format != "jpeg";
    const std::vector<std::uint8_t> pixels = keeps_alpha ? bitmap->rgba : without_alpha(*bitmap);
    const std::size_t channels = keeps_alpha ? 4 : 3;
    if (request.format == "png") {
        return to_png(pixels, bitmap->width, bitmap->height, channels);
    }
    const pictures::Pixels view{pixels.data(), bitmap->width, bitmap->height, channels};
    auto encoded = request.format == "jpeg"
                       ? pictures::encode_jpeg(view, request.quality)
                       : pictures::encode_webp(view, {.quality = request.quality});
    if (!encoded) {
        return no_picture(encoded.error().text);
    }
    return std::move(*encoded);
}

Result<std::string> replace_alpha(const std::string& picture, const std::string& mask) {
    auto below = pictures::decode_rgba(picture, kPixelsMax);
    if (!below) {
        return no_picture(below.error().text);
    }
    auto above = pictures::decode_rgba(mask, kPixelsMax);
    if (!above) {
        return no_picture(above.error().text);
    }
    for (std::size_t y = 0; y < below->height; ++y) {
        const std::size_t from_y = y * above->height / below->height;
        for (std::size_t x = 0; x < below->width; ++x) {
            const std::size_t from_x = x * above->width / below->width;
            below->rgba[4 * (y * below->width + x) + 3] =
                above->rgba[4 * (from_y * above->width + from_x) + 3];
        }
    }
    return to_png(below->rgba, below->width, below->height, 4);
}

}  // namespace comfyd::app
