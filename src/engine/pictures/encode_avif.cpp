// AVIF by FFmpeg's muxer and libaom, as one key frame.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

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
// libaom's speeds for stills; those below take many times as long for a few percent.
constexpr int kSpeed = 8;

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

ffmpeg::Codec open_encoder(const Pixels& pixels, const AvifOptions& options, AVPixelFormat format) {
    const AVCodec* encoder = avcodec_find_encoder_by_name("libaom-av1");
    ffmpeg::Codec codec(encoder != nullptr ? avcodec_alloc_context3(encoder) : nullptr);
    if (!codec) {
        return nullptr;
    }
    codec->width = static_cast<int>(pixels.width);
    codec->height = static_cast<int>(pixels.height);
    codec->pix_fmt = format;
    codec->time_base = {1, 1};
    codec->thread_count = 1;
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    codec->color_range = AVCOL_RANGE_JPEG;
    codec->color_primaries = AVCOL_PRI_BT709;
    codec->color_trc = AVCOL_TRC_IEC61966_2_1;
    codec->colorspace = format == AV_PIX_FMT_GBRP ? AVCOL_SPC_RGB : AVCOL_SPC_SMPTE170M;
    const int crf =
        options.lossless ? 0 : std::clamp((100 - options.quality) * kCrfMax / 100, 1, kCrfMax);
    av_opt_set(codec->priv_data, "usage", "allintra", 0);
    av_opt_set_int(codec->priv_data, "still-picture", 1, 0);
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
    frame->pict_type = AV_PICTURE_TYPE_I;
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

// A picture of the file: its encoder, and what came out of it.
struct Coded {
    ffmpeg::Codec codec;
    ffmpeg::Packet packet;
};

Outcome<Coded> encode(
    const Pixels& pixels, const AvifOptions& options, AVPixelFormat format, ffmpeg::Frame frame
) {
    Coded coded{open_encoder(pixels, options, format), ffmpeg::Packet(av_packet_alloc())};
    if (!coded.codec) {
        return refuse("this FFmpeg has no AVIF encoder");
    }
    if (!frame || !coded.packet || avcodec_send_frame(coded.codec.get(), frame.get()) < 0 ||
        avcodec_send_frame(coded.codec.get(), nullptr) < 0 ||
        avcodec_receive_packet(coded.codec.get(), coded.packet.get()) < 0) {
        return refuse("the picture cannot be written as AVIF");
    }
    return coded;
}

Outcome<std::string> assemble(const std::array<Coded*, 2>& pictures) {
    AVFormatContext* made = nullptr;
    avformat_alloc_output_context2(&made, nullptr, "avif", nullptr);
    const Muxer muxer(made);
    if (!muxer || avio_open_dyn_buf(&muxer->pb) < 0) {
        return refuse("this FFmpeg writes no AVIF");
    }
    for (Coded* picture : pictures) {
        if (picture == nullptr) {
            continue;
        }
        AVStream* stream = avformat_new_stream(muxer.get(), nullptr);
        if (stream == nullptr ||
            avcodec_parameters_from_context(stream->codecpar, picture->codec.get()) < 0) {
            return refuse("there is no memory for an AVIF file");
        }
        stream->time_base = picture->codec->time_base;
        picture->packet->stream_index = stream->index;
        picture->packet->pts = picture->packet->dts = 0;
        picture->packet->duration = 1;
    }
    bool is_written = avformat_write_header(muxer.get(), nullptr) >= 0;
    for (Coded* picture : pictures) {
        if (picture != nullptr) {
            is_written = is_written && av_write_frame(muxer.get(), picture->packet.get()) >= 0;
        }
    }
    is_written = is_written && av_write_trailer(muxer.get()) >= 0;
    std::uint8_t* bytes = nullptr;
    const int size = avio_close_dyn_buf(std::exchange(muxer->pb, nullptr), &bytes);
    std::string file(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    av_free(bytes);
    if (!is_written || file.empty()) {
        return refuse("the picture cannot be written as AVIF");
    }
    return file;
}

}  // namespace

Outcome<std::string> encode_avif(const Pixels& pixels, const AvifOptions& options) {
    ffmpeg::be_quiet();
    if (pixels.width == 0 || pixels.height == 0 || pixels.width > kSideMaxOfAvif ||
        pixels.height > kSideMaxOfAvif) {
        return refuse(
            "AVIF pictures measure at most " + std::to_string(kSideMaxOfAvif) + " x " +
            std::to_string(kSideMaxOfAvif)
        );
    }
    const AVPixelFormat format = options.lossless ? AV_PIX_FMT_GBRP : AV_PIX_FMT_YUV420P;
    auto colours = encode(pixels, options, format, colours_of(pixels, format));
    if (!colours) {
        return tl::unexpected(colours.error());
    }
    if (pixels.channels != 4) {
        return assemble({&*colours, nullptr});
    }
    auto alpha = encode(pixels, options, AV_PIX_FMT_GRAY8, alpha_of(pixels));
    if (!alpha) {
        return tl::unexpected(alpha.error());
    }
    return assemble({&*colours, &*alpha});
}

}  // namespace comfyd::engine::pictures
