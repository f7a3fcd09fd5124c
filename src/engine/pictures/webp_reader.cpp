// WebP with libwebp: animations, which FFmpeg does not read, and first frames in 8 bits.

#include <webp/decode.h>
#include <webp/demux.h>

#include <utility>

#include "engine/pictures/formats.hpp"
#include "engine/pictures/frame_converter.hpp"

namespace comfyd::engine::pictures {
namespace {

struct Free {
    void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};
using Decoder = std::unique_ptr<WebPAnimDecoder, Free>;

const std::uint8_t* bytes_of(std::string_view file) {
    return reinterpret_cast<const std::uint8_t*>(file.data());
}

struct Opened {
    Decoder decoder;
    WebPAnimInfo info{};
};

Outcome<Opened> open_canvas(std::string_view file, std::uint64_t pixels_max, WEBP_CSP_MODE order) {
    int width = 0;
    int height = 0;
    if (WebPGetInfo(bytes_of(file), file.size(), &width, &height) == 0) {
        return refuse("its data is damaged");
    }
    // Before the library takes memory for the canvas.
    const auto fits = check_size(
        static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height), pixels_max
    );
    if (!fits) {
        return tl::unexpected(fits.error());
    }
    WebPAnimDecoderOptions options{};
    const WebPData data{bytes_of(file), file.size()};
    if (WebPAnimDecoderOptionsInit(&options) == 0) {
        return refuse("this libwebp has another interface than the one it was built for");
    }
    options.color_mode = order;
    options.use_threads = 0;
    Opened opened;
    opened.decoder.reset(WebPAnimDecoderNew(&data, &options));
    if (!opened.decoder || WebPAnimDecoderGetInfo(opened.decoder.get(), &opened.info) == 0) {
        return refuse("its data is damaged");
    }
    if (opened.info.frame_count > kFramesMax) {
        return refuse(
            "it has more than " + std::to_string(kFramesMax) + " frames, which is the limit"
        );
    }
    return opened;
}

// The extended header says whether any frame has alpha.
bool says_alpha(std::string_view file) {
    WebPBitstreamFeatures features{};
    return WebPGetFeatures(bytes_of(file), file.size(), &features) == VP8_STATUS_OK &&
           features.has_alpha != 0;
}

Bitmap copy_of(const WebPAnimInfo& info, const std::uint8_t* canvas, bool has_alpha) {
    const std::size_t bytes = std::size_t{info.canvas_width} * info.canvas_height * 4;
    return {info.canvas_width, info.canvas_height, {canvas, canvas + bytes}, has_alpha};
}

// A frame over libwebp's canvas, whose bytes it does not own.
ffmpeg::Frame over(const WebPAnimInfo& info, std::uint8_t* canvas) {
    ffmpeg::Frame frame(av_frame_alloc());
    if (frame) {
        frame->format = AV_PIX_FMT_BGRA;
        frame->width = static_cast<int>(info.canvas_width);
        frame->height = static_cast<int>(info.canvas_height);
        frame->data[0] = canvas;
        frame->linesize[0] = frame->width * 4;
    }
    return frame;
}

// ComfyUI's FFmpeg decodes animations itself, always with alpha, and converts them like every
// other packed picture.
class WebpReader : public Reader {
public:
    WebpReader(Opened opened, const AVFrame& shape)
        : decoder_(std::move(opened.decoder)), info_(opened.info), converter_(shape) {
        facts_ = {
            .width = converter_.width(),
            .height = converter_.height(),
            .frames_max = info_.frame_count,
            .has_alpha = converter_.has_alpha(),
            .scratch_bytes = converter_.scratch_bytes()
        };
    }

    const Facts& facts() const override { return facts_; }

    Outcome<bool> read(std::uint8_t* scratch, float* rgb, float* mask) override {
        if (WebPAnimDecoderHasMoreFrames(decoder_.get()) == 0) {
            return false;
        }
        std::uint8_t* canvas = nullptr;
        int time_ms = 0;
        if (WebPAnimDecoderGetNext(decoder_.get(), &canvas, &time_ms) == 0) {
            return refuse("its data is damaged");
        }
        const ffmpeg::Frame frame = over(info_, canvas);
        if (!frame) {
            return refuse("there is no memory for a frame");
        }
        const auto converted = converter_.convert(*frame, scratch, rgb, mask);
        if (!converted) {
            return tl::unexpected(converted.error());
        }
        return true;
    }

private:
    Decoder decoder_;
    WebPAnimInfo info_;
    FrameConverter converter_;
    Facts facts_;
};

class WebpAnimation : public Animation {
public:
    WebpAnimation(Opened opened, bool has_alpha)
        : decoder_(std::move(opened.decoder)), info_(opened.info), has_alpha_(has_alpha) {}

    int loops() const override { return static_cast<int>(info_.loop_count); }

    Outcome<std::optional<Shown>> next() override {
        if (WebPAnimDecoderHasMoreFrames(decoder_.get()) == 0) {
            return std::nullopt;
        }
        std::uint8_t* canvas = nullptr;
        int end_ms = 0;
        if (WebPAnimDecoderGetNext(decoder_.get(), &canvas, &end_ms) == 0) {
            return refuse("its data is damaged");
        }
        Shown shown{copy_of(info_, canvas, has_alpha_), end_ms - std::exchange(time_ms_, end_ms)};
        return shown;
    }

private:
    Decoder decoder_;
    WebPAnimInfo info_;
    bool has_alpha_;
    int time_ms_ = 0;
};

}  // namespace

Outcome<std::unique_ptr<Animation>> open_webp_animation(
    std::string_view file, std::size_t pixels_max
) {
    auto opened = open_canvas(file, pixels_max, MODE_RGBA);
    if (!opened) {
        return tl::unexpected(opened.error());
    }
    return std::make_unique<WebpAnimation>(std::move(*opened), says_alpha(file));
}

Outcome<std::unique_ptr<Reader>> open_webp_reader(
    std::string_view file, std::function<bool()> /*stopped*/
) {
    auto opened = open_canvas(file, pixels_max_of_any(), MODE_BGRA);
    if (!opened) {
        return tl::unexpected(opened.error());
    }
    const ffmpeg::Frame shape = over(opened->info, nullptr);
    if (!shape) {
        return refuse("there is no memory for a frame");
    }
    return std::make_unique<WebpReader>(std::move(*opened), *shape);
}

Outcome<Bitmap> decode_rgba_webp(std::string_view file, std::size_t pixels_max) {
    auto opened = open_canvas(file, pixels_max, MODE_RGBA);
    if (!opened) {
        return tl::unexpected(opened.error());
    }
    std::uint8_t* canvas = nullptr;
    int time_ms = 0;
    if (WebPAnimDecoderGetNext(opened->decoder.get(), &canvas, &time_ms) == 0) {
        return refuse("its data is damaged");
    }
    return copy_of(opened->info, canvas, says_alpha(file));
}

}  // namespace comfyd::engine::pictures
