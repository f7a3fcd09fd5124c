// Still PNG with the engine's own decoder, which is faster than FFmpeg's and can be stopped.

#include <utility>

#include "engine/pictures/formats.hpp"
#include "engine/pictures/frame_converter.hpp"
#include "engine/pictures/png.hpp"

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

// A frame for deep colour, without memory.
ffmpeg::Frame deep_frame(const PngHeader& header) {
    ffmpeg::Frame frame(av_frame_alloc());
    if (frame) {
        frame->format = header.has_alpha ? AV_PIX_FMT_RGBA64BE : AV_PIX_FMT_RGB48BE;
        frame->width = static_cast<int>(header.width);
        frame->height = static_cast<int>(header.height);
        // FFmpeg's scaler reads rows in blocks.
        constexpr int kAlign = 64;
        const int bytes = frame->width * (header.has_alpha ? 8 : 6);
        frame->linesize[0] = (bytes + kAlign - 1) / kAlign * kAlign + kAlign;
    }
    return frame;
}

// The decoder's samples, converted as FFmpeg converts those of its own decoder. The frame lies at
// the end of the working space.
class DeepPngReader : public Reader {
public:
    DeepPngReader(std::string_view file, ffmpeg::Frame frame, std::function<bool()> stopped)
        : file_(file),
          frame_(std::move(frame)),
          stopped_(std::move(stopped)),
          converter_(*frame_),
          frame_at_((converter_.scratch_bytes() + 63) / 64 * 64) {
        const auto rows = static_cast<std::size_t>(frame_->height);
        facts_ = {
            .width = converter_.width(),
            .height = converter_.height(),
            .frames_max = 1,
            .has_alpha = converter_.has_alpha(),
            .scratch_bytes = frame_at_ + static_cast<std::size_t>(frame_->linesize[0]) * rows
        };
    }

    const Facts& facts() const override { return facts_; }

    Outcome<bool> read(std::uint8_t* scratch, float* rgb, float* mask) override {
        if (std::exchange(done_, true)) {
            return false;
        }
        frame_->data[0] = scratch + frame_at_;
        const auto row = [this](std::size_t y) {
            return frame_->data[0] + y * static_cast<std::size_t>(frame_->linesize[0]);
        };
        auto decoded = decode_png_raw(file_, row, stopped_);
        if (!decoded) {
            return refuse(std::move(decoded.error().text));
        }
        if (stopped_()) {
            return true;
        }
        const auto converted = converter_.convert(*frame_, scratch, rgb, mask);
        if (!converted) {
            return tl::unexpected(converted.error());
        }
        return true;
    }

private:
    std::string_view file_;
    ffmpeg::Frame frame_;
    std::function<bool()> stopped_;
    FrameConverter converter_;
    std::size_t frame_at_;
    Facts facts_;
    bool done_ = false;
};

}  // namespace

Outcome<std::unique_ptr<Reader>> open_deep_png_reader(
    std::string_view file, std::function<bool()> stopped
) {
    const auto header = read_png_header(file);
    if (!header) {
        return refuse(header.error().text);
    }
    if (header->has_mask != header->has_alpha) {
        return nullptr;
    }
    ffmpeg::be_quiet();
    ffmpeg::Frame frame = deep_frame(*header);
    if (!frame) {
        return refuse("there is no memory for a frame");
    }
    return std::make_unique<DeepPngReader>(file, std::move(frame), std::move(stopped));
}

Outcome<std::unique_ptr<Reader>> open_png_reader(
    std::string_view file, std::function<bool()> stopped
) {
    const auto header = read_png_header(file);
    if (!header) {
        return refuse(header.error().text);
    }
    return std::make_unique<PngReader>(file, *header, std::move(stopped));
}

Outcome<Bitmap> decode_rgba_png(
    std::string_view file, std::size_t pixels_max, const std::function<bool()>& stopped
) {
    const auto header = read_png_header(file);
    if (!header) {
        return refuse(header.error().text);
    }
    const auto fits = check_size(header->width, header->height, pixels_max);
    if (!fits) {
        return tl::unexpected(fits.error());
    }
    Bitmap bitmap{
        .width = header->width,
        .height = header->height,
        .rgba = std::vector<std::uint8_t>(header->width * header->height * 4),
        .has_alpha = header->has_mask
    };
    auto decoded = decode_png_rgba(file, bitmap.rgba.data(), stopped);
    if (!decoded) {
        return refuse(std::move(decoded.error().text));
    }
    return bitmap;
}

}  // namespace comfyd::engine::pictures
