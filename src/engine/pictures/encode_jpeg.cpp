#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/pictures/encode.hpp"
#include "engine/pictures/ffmpeg.hpp"
#include "engine/pictures/formats.hpp"

extern "C" {
#include <libavutil/mem.h>
}

namespace comfyd::engine::pictures {
namespace {

constexpr std::size_t kSideMaxOfJpeg = 65500;

// The example tables of the JPEG standard, which libjpeg scales by its quality.
constexpr std::array<std::uint8_t, 64> kLuma = {
    16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
    14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
    18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99
};
constexpr std::array<std::uint8_t, 64> kChroma = {
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
    99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99
};

// Owned by the codec context afterwards.
std::uint16_t* scaled(const std::array<std::uint8_t, 64>& table, int quality) {
    auto* matrix =
        static_cast<std::uint16_t*>(av_malloc_array(table.size(), sizeof(std::uint16_t)));
    const int scale = quality < 50 ? 5000 / quality : 200 - quality * 2;
    for (std::size_t i = 0; matrix != nullptr && i < table.size(); ++i) {
        matrix[i] = static_cast<std::uint16_t>(std::clamp((table[i] * scale + 50) / 100, 1, 255));
    }
    return matrix;
}

ffmpeg::Codec open_encoder(const Pixels& pixels, int quality) {
    const AVCodec* encoder = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
    ffmpeg::Codec codec(encoder != nullptr ? avcodec_alloc_context3(encoder) : nullptr);
    if (!codec) {
        return nullptr;
    }
    codec->width = static_cast<int>(pixels.width);
    codec->height = static_cast<int>(pixels.height);
    codec->pix_fmt = AV_PIX_FMT_YUVJ420P;
    codec->color_range = AVCOL_RANGE_JPEG;
    codec->time_base = {1, 25};
    codec->thread_count = 1;
    codec->flags |= AV_CODEC_FLAG_QSCALE;
    // The encoder multiplies its tables by the scale and divides by 8, so that 8 takes them as
    // they are.
    codec->global_quality = 8 * FF_QP2LAMBDA;
    codec->qmin = 1;
    codec->intra_matrix = scaled(kLuma, quality);
    codec->chroma_intra_matrix = scaled(kChroma, quality);
    if (codec->intra_matrix == nullptr || codec->chroma_intra_matrix == nullptr ||
        avcodec_open2(codec.get(), encoder, nullptr) < 0) {
        av_freep(&codec->chroma_intra_matrix);
        return nullptr;
    }
    return codec;
}

// FFmpeg 5 frees the other matrix with the context, and this one never.
struct MatrixOwner {
    AVCodecContext* codec;
    ~MatrixOwner() { av_freep(&codec->chroma_intra_matrix); }
};

ffmpeg::Frame to_yuv(const Pixels& pixels) {
    ffmpeg::Frame frame(av_frame_alloc());
    const int width = static_cast<int>(pixels.width);
    const int height = static_cast<int>(pixels.height);
    const ffmpeg::Scaler scaler(sws_getContext(
        width,
        height,
        pixels.channels == 4 ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24,
        width,
        height,
        AV_PIX_FMT_YUVJ420P,
        SWS_BILINEAR | SWS_ACCURATE_RND,
        nullptr,
        nullptr,
        nullptr
    ));
    if (!frame || !scaler) {
        return nullptr;
    }
    frame->format = AV_PIX_FMT_YUVJ420P;
    frame->color_range = AVCOL_RANGE_JPEG;
    frame->width = width;
    frame->height = height;
    frame->quality = 8 * FF_QP2LAMBDA;
    const std::array<const std::uint8_t*, 4> planes = {pixels.data};
    const std::array<int, 4> strides = {static_cast<int>(pixels.width * pixels.channels)};
    if (av_frame_get_buffer(frame.get(), 0) < 0 ||
        sws_scale(
            scaler.get(), planes.data(), strides.data(), 0, height, frame->data, frame->linesize
        ) != height) {
        return nullptr;
    }
    return frame;
}

}  // namespace

Outcome<std::string> encode_jpeg(const Pixels& pixels, int quality) {
    ffmpeg::be_quiet();
    if (pixels.width == 0 || pixels.height == 0 || pixels.width > kSideMaxOfJpeg ||
        pixels.height > kSideMaxOfJpeg) {
        return refuse("JPEG cannot hold a picture of that size");
    }
    const ffmpeg::Codec codec = open_encoder(pixels, std::clamp(quality, 1, 100));
    if (!codec) {
        return refuse("this FFmpeg has no JPEG encoder");
    }
    const MatrixOwner matrix{codec.get()};
    const ffmpeg::Frame frame = to_yuv(pixels);
    const ffmpeg::Packet packet(av_packet_alloc());
    if (!frame || !packet || avcodec_send_frame(codec.get(), frame.get()) < 0 ||
        avcodec_receive_packet(codec.get(), packet.get()) < 0) {
        return refuse("the picture cannot be written as JPEG");
    }
    return std::string(
        reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)
    );
}

}  // namespace comfyd::engine::pictures
