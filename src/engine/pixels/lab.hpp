// Colours between sRGB and CIELAB, with the constants of the two sources that ComfyUI takes its
// conversions from. Pixels lie in planes: all first components, then all second ones, then all
// third ones.
#pragma once

#include <array>
#include <cstddef>

namespace comfyd::engine {

using Matrix3 = std::array<std::array<float, 3>, 3>;

struct LabSpace {
    Matrix3 to_xyz;
    Matrix3 from_xyz;
    float white_x;
    float white_z;
    // Below the threshold the cube root is replaced by a line, and back.
    float threshold;
    float line_factor;
    float line_shift;  // added before the division
    float line_divisor;
    float back_threshold;
    float back_factor;
    float back_shift;
    float back_divisor;
    bool z_not_negative;
};

const LabSpace& kornia_lab();
const LabSpace& seedvr_lab();

// `count` pixels; `plane` floats lie between the components of one pixel.
void rgb_to_lab(
    const float* rgb, std::size_t plane, std::size_t count, const LabSpace& space, float* lab
);
// Results are within 0..1.
void lab_to_rgb(
    const float* lab, std::size_t plane, std::size_t count, const LabSpace& space, float* rgb
);

// Interleaved pixels, of which the first three channels count, to planes and back.
void to_planes(
    const float* pixels, std::size_t count, std::size_t channels, std::size_t plane, float* planes
);
void from_planes(
    const float* planes, std::size_t plane, std::size_t count, std::size_t channels, float* pixels
);

}  // namespace comfyd::engine
