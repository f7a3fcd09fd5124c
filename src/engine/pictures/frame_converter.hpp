// Decoded frames of FFmpeg to ComfyUI's floats, the way ComfyUI's own loader does it.
//
// 8-bit RGB, palettes and full-range YUV go to bytes and are divided by 255; everything else goes
// to 32-bit float planes. One converter serves one stream, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/pictures/ffmpeg.hpp"
#include "engine/pictures/reader.hpp"

namespace comfyd::engine::pictures {

class FrameConverter {
public:
    // The first frame of a stream decides for all of them.
    explicit FrameConverter(const AVFrame& first);

    bool has_alpha() const { return alpha_; }
    std::size_t width() const { return width_; }  // after rotation
    std::size_t height() const { return height_; }
    std::size_t scratch_bytes() const { return scratch_bytes_; }

    // `mask` (1 - alpha) may be nullptr without alpha.
    Outcome<> convert(const AVFrame& frame, std::uint8_t* scratch, float* rgb, float* mask);

private:
    Outcome<> convert_bytes(const AVFrame& frame, std::uint8_t* scratch, float* rgb, float* mask);
    Outcome<> convert_floats(const AVFrame& frame, std::uint8_t* scratch, float* rgb, float* mask);
    Outcome<> convert_gray(const AVFrame& frame, float* rgb, float* mask);

    bool alpha_ = false;
    bool bytes_ = false;
    std::size_t width_ = 0;
    std::size_t height_ = 0;
    std::size_t scratch_bytes_ = 0;
};

// A copy of `frame` in another pixel format. nullptr when that is not possible.
ffmpeg::Frame in_format(const AVFrame& frame, AVPixelFormat format);

}  // namespace comfyd::engine::pictures
