// AVIF by FFmpeg's muxer and libaom: one key frame, or a sequence of pictures.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "engine/pictures/encode.hpp"
#include "engine/pictures/ffmpeg.hpp"
#include "engine/pictures/formats.hpp"

extern "C" {
#include <libavutil/opt.h>
}

namespace comfyd::engine::pictures {
namespace {

constexpr std::size_t kSideMaxOfAvif = 16'384;
constexpr int kCrfMax = 63;
// libaom's speed; those below take many times as long for a few percent.
constexpr int kSpeed = 8;
constexpr AVRational kMilliseconds{1, 1000};

enum class Kind { still, sequence };

struct CloseMuxer {
    void operator()(AVFormatContext* muxer) const {
        if (muxer->pb != nullptr) {
            std::uint8_t* written = nullptr;
            avio_close_dyn_buf(muxer->pb, &written);
            av_free(written);
        }
        avformat_free_context(muxer);
    }
};
using Muxer = std::unique_ptr<AVFormatContext, CloseMuxer>;

ffmpeg::Codec open_encoder(
    const Pixels& pixels, const AvifOptions& options, AVPixelFormat format, Kind kind
) {
    const AVCodec* encoder = avcodec_find_encoder_by_name("libaom-av1");
    ffmpeg::Codec codec(encoder != nullptr ? avcodec_alloc_context3(encoder) : nullptr);
    if (!codec) {
        return nullptr;
    }
    codec->width = static_cast<int>(pixels.width);
    codec->height = static_cast<int>(pixels.height);
    codec->pix_fmt = format;
    codec->time_base = kMilliseconds;
    codec->thread_count = 1;
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    codec->color_range = AVCOL_RANGE_JPEG;
    codec->color_primaries = AVCOL_PRI_BT709;
    codec->color_trc = AVCOL_TRC_IEC61966_2_1;
    codec->colorspace = format == AV_PIX_FMT_GBRP ? AVCOL_SPC_RGB : AVCOL_SPC_SMPTE170M;
    const int crf =
        options.lossless ? 0 : std::clamp((100 - options.quality) * kCrfMax / 100, 1, kCrfMax);
    // Pictures of a sequence are told by their difference, which a file without loss does not do.
    const bool tells_difference = kind == Kind::sequence && !options.lossless;
    av_opt_set(codec->priv_data, "usage", tells_difference ? "realtime" : "allintra", 0);
    av_opt_set_int(codec->priv_data, "still-picture", kind == Kind::still ? 1 : 0, 0);
    av_opt_set_int(codec->priv_data, "lag-in-frames", 0, 0);
    av_opt_set_int(codec->priv_data, "cpu-used", kSpeed, 0);
    av_opt_set_int(codec->priv_data, "crf", crf, 0);
    if (options.lossless) {
        av_opt_set(codec->priv_data, "aom-params", "lossless=1", 0);
    }
    return avcodec_open2(codec.get(), encoder, nullptr) < 0 ? nullptr : std::move(codec);
}

ffmpeg::Frame empty_frame(const Pixels& pixels, AVPixelFormat format) {
    ffmpeg::Frame frame(av_frame_alloc());
    if (!frame) {
        return nullptr;
    }
    frame->format = format;
    frame->color_range = AVCOL_RANGE_JPEG;
    frame->width = static_cast<int>(pixels.width);
    frame->height = static_cast<int>(pixels.height);
    return av_frame_get_buffer(frame.get(), 0) < 0 ? nullptr : std::move(frame);
}

ffmpeg::Frame colours_of(const Pixels& pixels, AVPixelFormat format) {
    ffmpeg::Frame frame = empty_frame(pixels, format);
    const int width = static_cast<int>(pixels.width);
    const int height = static_cast<int>(pixels.height);
    const ffmpeg::Scaler scaler(sws_getContext(
        width,
        height,
        pixels.channels == 4 ? AV_PIX_FMT_RGB0 : AV_PIX_FMT_RGB24,
        width,
        height,
        format,
        SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT,
        nullptr,
        nullptr,
        nullptr
    ));
    if (!frame || !scaler) {
        return nullptr;
    }
    const int* coefficients = sws_getCoefficients(SWS_CS_ITU601);
    sws_setColorspaceDetails(scaler.get(), coefficients, 1, coefficients, 1, 0, 1 << 16, 1 << 16);
    const std::array<const std::uint8_t*, 4> planes = {pixels.data};
    const std::array<int, 4> strides = {static_cast<int>(pixels.width * pixels.channels)};
    const int rows = sws_scale(
        scaler.get(), planes.data(), strides.data(), 0, height, frame->data, frame->linesize
    );
    return rows == height ? std::move(frame) : nullptr;
}

ffmpeg::Frame alpha_of(const Pixels& pixels) {
    ffmpeg::Frame frame = empty_frame(pixels, AV_PIX_FMT_GRAY8);
    for (std::size_t y = 0; frame && y < pixels.height; ++y) {
        std::uint8_t* row = frame->data[0] + static_cast<std::ptrdiff_t>(y) * frame->linesize[0];
        const std::uint8_t* from = pixels.data + y * pixels.width * 4;
        for (std::size_t x = 0; x < pixels.width; ++x) {
            row[x] = from[4 * x + 3];
        }
    }
    return frame;
}

// An AVIF file that is being written: a stream of colours and, where there is alpha, one of that.
class Writer {
public:
    static Outcome<Writer> open(const Pixels& shape, const AvifOptions& options, Kind kind) {
        ffmpeg::be_quiet();
        if (shape.width == 0 || shape.height == 0 || shape.width > kSideMaxOfAvif ||
            shape.height > kSideMaxOfAvif) {
            return refuse(
                "AVIF pictures measure at most " + std::to_string(kSideMaxOfAvif) + " x " +
                std::to_string(kSideMaxOfAvif)
            );
        }
        Writer writer(shape, options);
        AVFormatContext* made = nullptr;
        avformat_alloc_output_context2(&made, nullptr, "avif", nullptr);
        writer.muxer_.reset(made);
        writer.packet_.reset(av_packet_alloc());
        if (!writer.muxer_ || !writer.packet_ || avio_open_dyn_buf(&made->pb) < 0) {
            return refuse("this FFmpeg writes no AVIF");
        }
        auto begun = writer.add_streams(options, kind);
        if (!begun) {
            return tl::unexpected(begun.error());
        }
        return writer;
    }

    // REQUIRES: of the shape that it was opened with.
    Outcome<> add(const TimedPixels& frame) {
        auto colours = write(0, colours_of(frame.pixels, colours_), frame.duration_ms);
        if (!colours || codecs_.size() == 1) {
            time_ms_ += frame.duration_ms;
            return colours;
        }
        auto alpha = write(1, alpha_of(frame.pixels), frame.duration_ms);
        time_ms_ += frame.duration_ms;
        return alpha;
    }

    Outcome<std::string> finish() {
        const bool is_written = av_write_trailer(muxer_.get()) >= 0;
        std::uint8_t* bytes = nullptr;
        const int size = avio_close_dyn_buf(std::exchange(muxer_->pb, nullptr), &bytes);
        std::string file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
        av_free(bytes);
        if (!is_written || file.empty()) {
            return cannot_write();
        }
        return file;
    }

    const Pixels& shape() const { return shape_; }

private:
    Writer(const Pixels& shape, const AvifOptions& options)
        : shape_{nullptr, shape.width, shape.height, shape.channels},
          colours_(options.lossless ? AV_PIX_FMT_GBRP : AV_PIX_FMT_YUV420P) {}

    static tl::unexpected<Failure> cannot_write() {
        return refuse("the picture cannot be written as AVIF");
    }

    Outcome<> add_streams(const AvifOptions& options, Kind kind) {
        const std::size_t count = shape_.channels == 4 ? 2 : 1;
        for (std::size_t i = 0; i < count; ++i) {
            codecs_.push_back(
                open_encoder(shape_, options, i == 0 ? colours_ : AV_PIX_FMT_GRAY8, kind)
            );
            if (!codecs_.back()) {
                return refuse("this FFmpeg has no AVIF encoder");
            }
            AVStream* stream = avformat_new_stream(muxer_.get(), nullptr);
            if (stream == nullptr ||
                avcodec_parameters_from_context(stream->codecpar, codecs_[i].get()) < 0) {
                return refuse("there is no memory for an AVIF file");
            }
            stream->time_base = kMilliseconds;
        }
        if (avformat_write_header(muxer_.get(), nullptr) < 0) {
            return cannot_write();
        }
        return {};
    }

    // Nothing lags behind: out comes the picture that went in.
    Outcome<> write(std::size_t stream, ffmpeg::Frame frame, int duration_ms) {
        if (!frame) {
            return refuse("there is no memory for an AVIF file");
        }
        frame->pts = time_ms_;
        if (avcodec_send_frame(codecs_[stream].get(), frame.get()) < 0 ||
            avcodec_receive_packet(codecs_[stream].get(), packet_.get()) < 0) {
            return cannot_write();
        }
        packet_->stream_index = static_cast<int>(stream);
        packet_->pts = packet_->dts = time_ms_;
        packet_->duration = duration_ms;
        av_packet_rescale_ts(packet_.get(), kMilliseconds, muxer_->streams[stream]->time_base);
        const int written = av_write_frame(muxer_.get(), packet_.get());
        av_packet_unref(packet_.get());
        if (written < 0) {
            return cannot_write();
        }
        return {};
    }

    Pixels shape_;  // without pixels
    AVPixelFormat colours_;
    Muxer muxer_;
    std::vector<ffmpeg::Codec> codecs_;
    ffmpeg::Packet packet_;
    std::int64_t time_ms_ = 0;
};

}  // namespace

Outcome<std::string> encode_avif(const Pixels& pixels, const AvifOptions& options) {
    auto writer = Writer::open(pixels, options, Kind::still);
    if (!writer) {
        return tl::unexpected(writer.error());
    }
    const auto added = writer->add({pixels, 1});
    if (!added) {
        return tl::unexpected(added.error());
    }
    return writer->finish();
}

Outcome<std::string> encode_avif_animation(
    const FrameStream& next, const AvifOptions& options, const std::function<bool()>& stopped
) {
    auto frame = next();
    if (!frame || !*frame) {
        return frame ? refuse("there is nothing to write") : tl::unexpected(frame.error());
    }
    auto writer = Writer::open((*frame)->pixels, options, Kind::sequence);
    if (!writer) {
        return tl::unexpected(writer.error());
    }
    for (; frame && *frame; frame = next()) {
        const Pixels& pixels = (*frame)->pixels;
        const Pixels& shape = writer->shape();
        if (stopped()) {
            return refuse("it was stopped");
        }
        if (pixels.width != shape.width || pixels.height != shape.height ||
            pixels.channels != shape.channels) {
            return refuse("its pictures are of different sizes");
        }
        const auto added = writer->add(**frame);
        if (!added) {
            return tl::unexpected(added.error());
        }
    }
    if (!frame) {
        return tl::unexpected(frame.error());
    }
    return writer->finish();
}

}  // namespace comfyd::engine::pictures
