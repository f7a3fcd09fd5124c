// Still PNG with the engine's own decoder, which is faster than FFmpeg's.

#include <spng.h>

#include <utility>

#include "engine/pictures/formats.hpp"
#include "engine/png.hpp"

namespace comfyd::engine::pictures {
namespace {

class PngReader : public Reader {
public:
    PngReader(std::string_view file, const PngHeader& header, std::function<bool()> stopped)
        : file_(file), stopped_(std::move(stopped)) {
        facts_ = {
            .width = header.width,
            .height = header.height,
            .frames_max = 1,
            .has_alpha = header.has_mask,
            .scratch_bytes = header.scratch_bytes
        };
    }

    const Facts& facts() const override { return facts_; }

    Outcome<bool> read(std::uint8_t* scratch, float* rgb, float* mask) override {
        if (std::exchange(done_, true)) {
            return false;
        }
        auto decoded = decode_png(file_, scratch, rgb, mask, stopped_);
        if (!decoded) {
            return refuse(std::move(decoded.error().text));
        }
        return true;
    }

private:
    std::string_view file_;
    std::function<bool()> stopped_;
    Facts facts_;
    bool done_ = false;
};

}  // namespace

Outcome<std::unique_ptr<Reader>> open_png_reader(
    std::string_view file, std::function<bool()> stopped
) {
    const auto header = read_png_header(file);
    if (!header) {
        return refuse(header.error().text);
    }
    return std::make_unique<PngReader>(file, *header, std::move(stopped));
}

Outcome<Bitmap> decode_rgba_png(std::string_view file, std::size_t pixels_max) {
    const auto header = read_png_header(file);
    if (!header) {
        return refuse(header.error().text);
    }
    const auto fits = check_size(header->width, header->height, pixels_max);
    if (!fits) {
        return tl::unexpected(fits.error());
    }
    const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(
        spng_ctx_new(0), &spng_ctx_free
    );
    Bitmap bitmap{
        .width = header->width,
        .height = header->height,
        .rgba = std::vector<std::uint8_t>(header->width * header->height * 4),
        .has_alpha = header->has_mask
    };
    int error = context ? spng_set_png_buffer(context.get(), file.data(), file.size()) : SPNG_EMEM;
    error = error != 0 ? error
                       : spng_decode_image(
                             context.get(),
                             bitmap.rgba.data(),
                             bitmap.rgba.size(),
                             SPNG_FMT_RGBA8,
                             SPNG_DECODE_TRNS
                         );
    if (error != 0) {
        return refuse(std::string("its data is damaged: ") + spng_strerror(error));
    }
    return bitmap;
}

}  // namespace comfyd::engine::pictures
