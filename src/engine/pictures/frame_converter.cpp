#include "engine/pictures/frame_converter.hpp"

extern "C" {
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/pictures/formats.hpp"

namespace comfyd::engine::pictures {
namespace {

constexpr std::size_t kAlign = 64;
constexpr int kAlignedWidth = 32;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlign - 1) / kAlign * kAlign;
}

AVPixelFormat format_of(const AVFrame& frame) {
    return static_cast<AVPixelFormat>(frame.format);
}

const AVPixFmtDescriptor& describe(const AVFrame& frame) {
    return *av_pix_fmt_desc_get(format_of(frame));
}

bool is_alpha(const AVFrame& frame) {
    return (describe(frame).flags & AV_PIX_FMT_FLAG_ALPHA) != 0 ||
           format_of(frame) == AV_PIX_FMT_PAL8;
}

bool is_yuv(AVPixelFormat format) {
    const AVPixFmtDescriptor& facts = *av_pix_fmt_desc_get(format);
    return (facts.flags & AV_PIX_FMT_FLAG_RGB) == 0 && facts.nb_components >= 3;
}

bool is_gray(const AVFrame& frame) {
    const AVPixFmtDescriptor& facts = describe(frame);
    return (facts.flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) == 0 &&
           facts.nb_components <= 2;
}

bool is_full_range_jpeg(AVPixelFormat format) {
    return format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P ||
           format == AV_PIX_FMT_YUVJ444P;
}

// Counter-clockwise quarter turns, as ComfyUI derives them from the file's display matrix.
int quarter_turns(const AVFrame& frame) {
    const AVFrameSideData* data = av_frame_get_side_data(&frame, AV_FRAME_DATA_DISPLAYMATRIX);
    if (data == nullptr || data->size < 9 * sizeof(std::int32_t)) {
        return 0;
    }
    const double degrees =
        av_display_rotation_get(reinterpret_cast<const std::int32_t*>(data->data));
    if (!std::isfinite(degrees)) {
        return 0;
    }
    const int turns = static_cast<int>(std::floor(std::trunc(degrees) / 90.0));
    return (turns % 4 + 4) % 4;
}

// Where the pixel (x, y) of a frame lands after its turns.
struct Turned {
    std::size_t width;  // of the frame
    std::size_t height;
    int turns;

    std::size_t operator()(std::size_t x, std::size_t y) const {
        switch (turns) {
            case 1:
                return (width - 1 - x) * height + y;
            case 2:
                return (height - 1 - y) * width + (width - 1 - x);
            case 3:
                return x * height + (height - 1 - y);
            default:
                return y * width + x;
        }
    }
};

Turned turned(const AVFrame& frame) {
    return {
        static_cast<std::size_t>(frame.width),
        static_cast<std::size_t>(frame.height),
        quarter_turns(frame)
    };
}

struct Target {
    AVPixelFormat format;
    std::uint8_t* const* planes;
    const int* strides;
    bool full_range = false;  // where the target is YUV
};

// 8 bit: what ComfyUI's scaler does by default.
bool scale(const AVFrame& frame, const Target& target) {
    ffmpeg::Scaler scaler(sws_getContext(
        frame.width,
        frame.height,
        format_of(frame),
        frame.width,
        frame.height,
        target.format,
        SWS_BILINEAR,
        nullptr,
        nullptr,
        nullptr
    ));
    if (!scaler) {
        return false;
    }
    int* coefficients = nullptr;
    int* target_coefficients = nullptr;
    int range = 0;
    int target_range = 0;
    int brightness = 0;
    int contrast = 0;
    int saturation = 0;
    const bool told = sws_getColorspaceDetails(
                          scaler.get(),
                          &coefficients,
                          &range,
                          &target_coefficients,
                          &target_range,
                          &brightness,
                          &contrast,
                          &saturation
                      ) >= 0;
    const bool full = frame.color_range == AVCOL_RANGE_JPEG || is_full_range_jpeg(format_of(frame));
    if (told && is_yuv(format_of(frame))) {
        sws_setColorspaceDetails(
            scaler.get(),
            sws_getCoefficients(frame.colorspace),
            full ? 1 : range,
            is_yuv(target.format) ? sws_getCoefficients(frame.colorspace) : target_coefficients,
            target.full_range ? 1 : target_range,
            brightness,
            contrast,
            saturation
        );
    }
    return sws_scale(
               scaler.get(),
               frame.data,
               frame.linesize,
               0,
               frame.height,
               target.planes,
               target.strides
           ) == frame.height;
}

ffmpeg::Frame blank(int width, int height, AVPixelFormat format) {
    ffmpeg::Frame frame(av_frame_alloc());
    if (!frame) {
        return nullptr;
    }
    frame->format = format;
    frame->width = width;
    frame->height = height;
    if (av_frame_get_buffer(frame.get(), kAlign) < 0) {
        return nullptr;
    }
    return frame;
}

// Widened to a multiple of 32 with copies of the last column and row: ComfyUI does so because the
// scaler looks beyond the edge.
ffmpeg::Frame padded(const AVFrame& frame) {
    const auto round_up = [](int side) {
        return (side + kAlignedWidth - 1) / kAlignedWidth * kAlignedWidth;
    };
    const AVPixFmtDescriptor& facts = describe(frame);
    ffmpeg::Frame wide = blank(round_up(frame.width), round_up(frame.height), format_of(frame));
    if (!wide) {
        return nullptr;
    }
    wide->colorspace = frame.colorspace;
    wide->color_range = frame.color_range;
    for (int p = 0; p < av_pix_fmt_count_planes(format_of(frame)); ++p) {
        const bool chroma = p == 1 || p == 2;
        const int shift_x = chroma ? facts.log2_chroma_w : 0;
        const int shift_y = chroma ? facts.log2_chroma_h : 0;
        const auto sample = static_cast<std::size_t>(facts.comp[p].step);
        const int from_rows = -(-frame.height >> shift_y);
        const auto from_width = static_cast<std::size_t>(-(-frame.width >> shift_x));
        const auto to_width = static_cast<std::size_t>(wide->width >> shift_x);
        for (int y = 0; y < wide->height >> shift_y; ++y) {
            const std::uint8_t* from =
                frame.data[p] + std::ptrdiff_t{std::min(y, from_rows - 1)} * frame.linesize[p];
            std::uint8_t* into = wide->data[p] + std::ptrdiff_t{y} * wide->linesize[p];
            std::memcpy(into, from, from_width * sample);
            for (std::size_t x = from_width; x < to_width; ++x) {
                std::memcpy(into + x * sample, from + (from_width - 1) * sample, sample);
            }
        }
    }
    return wide;
}

// The planar format that holds a packed one without loss.
AVPixelFormat planar_of(const AVFrame& frame) {
    const bool deep = describe(frame).comp[0].depth > 8;
    if (is_alpha(frame)) {
        return deep ? AV_PIX_FMT_GBRAP16LE : AV_PIX_FMT_GBRAP;
    }
    return deep ? AV_PIX_FMT_GBRP16LE : AV_PIX_FMT_GBRP;
}

// Packed bytes to planes. Older scalers round alpha on this way, so plain bytes are only moved.
ffmpeg::Frame to_planar(const AVFrame& frame) {
    const AVPixFmtDescriptor& facts = describe(frame);
    const int step = facts.comp[0].step;
    if (facts.comp[0].depth != 8 || (facts.flags & AV_PIX_FMT_FLAG_BITSTREAM) != 0 || step < 3) {
        return in_format(frame, planar_of(frame));
    }
    ffmpeg::Frame planar = blank(frame.width, frame.height, planar_of(frame));
    constexpr std::array<std::size_t, 4> kPlaneOf = {2, 0, 1, 3};  // of red, green, blue, alpha
    for (std::size_t c = 0; planar && c < (is_alpha(frame) ? 4U : 3U); ++c) {
        const std::size_t plane = kPlaneOf[c];
        for (int y = 0; y < frame.height; ++y) {
            const std::uint8_t* from =
                frame.data[0] + std::ptrdiff_t{y} * frame.linesize[0] + facts.comp[c].offset;
            std::uint8_t* into = planar->data[plane] + std::ptrdiff_t{y} * planar->linesize[plane];
            for (int x = 0; x < frame.width; ++x) {
                into[x] = from[std::ptrdiff_t{x} * step];
            }
        }
    }
    return planar;
}

tl::unexpected<Failure> cannot_convert(const AVFrame& frame) {
    const char* name = av_get_pix_fmt_name(format_of(frame));
    return refuse(
        "its pixel format " + std::string(name != nullptr ? name : "?") + " cannot be converted"
    );
}

}  // namespace

ffmpeg::Frame in_format(const AVFrame& frame, AVPixelFormat format) {
    ffmpeg::Frame converted = blank(frame.width, frame.height, format);
    const bool full = is_full_range_jpeg(format_of(frame));
    if (!converted || !scale(frame, {format, converted->data, converted->linesize, full})) {
        return nullptr;
    }
    converted->colorspace = frame.colorspace;
    converted->color_range = full ? AVCOL_RANGE_JPEG : frame.color_range;
    return converted;
}

FrameConverter::FrameConverter(const AVFrame& first) : alpha_(is_alpha(first)) {
    const AVPixelFormat format = format_of(first);
    bytes_ = is_full_range_jpeg(format) || format == AV_PIX_FMT_RGB24 ||
             format == AV_PIX_FMT_RGBA || format == AV_PIX_FMT_PAL8;
    width_ = static_cast<std::size_t>(first.width);
    height_ = static_cast<std::size_t>(first.height);
    // The float planes may be widened in both directions.
    const std::size_t row = aligned((width_ + kAlignedWidth) * sizeof(float));
    const std::size_t planes = bytes_ ? 1 : alpha_ ? 4 : 3;
    scratch_bytes_ = is_gray(first) ? 0 : planes * row * (height_ + kAlignedWidth) + kAlign;
    if (quarter_turns(first) % 2 != 0) {
        std::swap(width_, height_);
    }
}

Outcome<> FrameConverter::convert(
    const AVFrame& frame, std::uint8_t* scratch, float* rgb, float* mask
) {
    auto width = static_cast<std::size_t>(frame.width);
    auto height = static_cast<std::size_t>(frame.height);
    if (quarter_turns(frame) % 2 != 0) {
        std::swap(width, height);
    }
    if (width != width_ || height != height_) {
        return refuse("its frames have different sizes");
    }
    if (bytes_) {
        return convert_bytes(frame, scratch, rgb, mask);
    }
    if (is_gray(frame)) {
        return convert_gray(frame, rgb, mask);
    }
    return convert_floats(frame, scratch, rgb, mask);
}

Outcome<> FrameConverter::convert_bytes(
    const AVFrame& frame, std::uint8_t* scratch, float* rgb, float* mask
) {
    const std::size_t samples = alpha_ ? 4 : 3;
    const std::size_t stride = aligned(static_cast<std::size_t>(frame.width) * samples);
    const std::array<std::uint8_t*, 4> planes = {scratch};
    const std::array<int, 4> strides = {static_cast<int>(stride)};
    const Target target{alpha_ ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24, planes.data(), strides.data()};
    // With an odd number of rows older scalers leave their exact way; through deeper samples they
    // come within the last bit of newer ones.
    const bool subsampled =
        format_of(frame) == AV_PIX_FMT_YUVJ420P || format_of(frame) == AV_PIX_FMT_YUVJ422P;
    ffmpeg::Frame deep;
    if (subsampled && frame.height % 2 != 0) {
        deep = in_format(frame, AV_PIX_FMT_YUV444P16LE);
    }
    if (!scale(deep ? *deep : frame, target)) {
        return cannot_convert(frame);
    }
    const Turned place = turned(frame);
    for (std::size_t y = 0; y < place.height; ++y) {
        const std::uint8_t* row = scratch + y * stride;
        for (std::size_t x = 0; x < place.width; ++x) {
            const std::size_t at = place(x, y);
            for (std::size_t c = 0; c < 3; ++c) {
                rgb[at * 3 + c] = static_cast<float>(row[x * samples + c]) / 255.0F;
            }
            if (alpha_) {
                mask[at] = 1.0F - static_cast<float>(row[x * samples + 3]) / 255.0F;
            }
        }
    }
    return {};
}

Outcome<> FrameConverter::convert_floats(
    const AVFrame& frame, std::uint8_t* scratch, float* rgb, float* mask
) {
    const AVFrame* source = &frame;
    ffmpeg::Frame planar;
    ffmpeg::Frame wide;
    if (frame.width % kAlignedWidth != 0) {
        if ((describe(frame).flags & AV_PIX_FMT_FLAG_PLANAR) == 0) {
            planar = to_planar(frame);
            source = planar.get();
        }
        wide = source != nullptr ? padded(*source) : nullptr;
        source = wide.get();
    }
    if (source == nullptr) {
        return cannot_convert(frame);
    }
    const std::size_t stride = aligned(static_cast<std::size_t>(source->width) * sizeof(float));
    const std::size_t plane_bytes = stride * static_cast<std::size_t>(source->height);
    std::array<std::uint8_t*, 4> planes{};
    std::array<int, 4> strides{};
    for (std::size_t p = 0; p < (alpha_ ? 4U : 3U); ++p) {
        planes[p] = scratch + p * plane_bytes;
        strides[p] = static_cast<int>(stride);
    }
    const AVPixelFormat format = alpha_ ? AV_PIX_FMT_GBRAPF32LE : AV_PIX_FMT_GBRPF32LE;
    if (!scale(*source, {format, planes.data(), strides.data()})) {
        return cannot_convert(frame);
    }
    const Turned place = turned(frame);
    const auto row_of = [&](std::size_t plane, std::size_t y) {
        return reinterpret_cast<const float*>(planes[plane] + y * stride);
    };
    // Alpha of 8 bits is widened like gray; older scalers do so only for packed pictures.
    const bool own_alpha = alpha_ && wide && is_alpha(*wide) && describe(*wide).comp[3].depth == 8;
    const auto alpha_at = [&](std::size_t x, std::size_t y) {
        if (!own_alpha) {
            return row_of(3, y)[x];
        }
        const std::uint8_t* row =
            wide->data[3] + static_cast<std::ptrdiff_t>(y) * wide->linesize[3];
        return static_cast<float>(256U * row[x]) * (1.0F / 65535.0F);
    };
    for (std::size_t y = 0; y < place.height; ++y) {
        for (std::size_t x = 0; x < place.width; ++x) {
            float* pixel = rgb + place(x, y) * 3;
            pixel[0] = row_of(2, y)[x];
            pixel[1] = row_of(0, y)[x];
            pixel[2] = row_of(1, y)[x];
            if (alpha_) {
                mask[place(x, y)] = 1.0F - alpha_at(x, y);
            }
        }
    }
    return {};
}

// FFmpeg widens gray to 16 bits by a shift, so that white is a little less than 1. Older scalers
// cannot turn gray into float planes, so this is done by hand.
Outcome<> FrameConverter::convert_gray(const AVFrame& frame, float* rgb, float* mask) {
    const bool deep = describe(frame).comp[0].depth > 8;
    const bool own_alpha = is_alpha(frame);
    const AVPixelFormat format = own_alpha ? (deep ? AV_PIX_FMT_YA16LE : AV_PIX_FMT_YA8)
                                           : (deep ? AV_PIX_FMT_GRAY16LE : AV_PIX_FMT_GRAY8);
    const ffmpeg::Frame same = format_of(frame) == format ? ffmpeg::Frame(av_frame_clone(&frame))
                                                          : in_format(frame, format);
    if (!same) {
        return cannot_convert(frame);
    }
    const Turned place = turned(frame);
    const std::size_t samples = own_alpha ? 2 : 1;
    for (std::size_t y = 0; y < place.height; ++y) {
        const std::uint8_t* row =
            same->data[0] + static_cast<std::ptrdiff_t>(y) * same->linesize[0];
        const auto value = [&](std::size_t at) {
            const unsigned sample = deep ? row[at * 2] + 256U * row[at * 2 + 1] : 256U * row[at];
            return static_cast<float>(sample) * (1.0F / 65535.0F);
        };
        for (std::size_t x = 0; x < place.width; ++x) {
            const std::size_t at = place(x, y);
            std::fill_n(rgb + at * 3, 3, value(x * samples));
            if (alpha_) {
                mask[at] = own_alpha ? 1.0F - value(x * samples + 1) : 0.0F;
            }
        }
    }
    return {};
}

}  // namespace comfyd::engine::pictures
