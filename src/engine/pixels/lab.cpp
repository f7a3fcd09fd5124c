#include "engine/pixels/lab.hpp"

#include <cmath>

#include "engine/nodes/kernel.hpp"
#include "engine/pixels/power.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine {
namespace {

float to_linear(float value) {
    COMFYD_NO_CONTRACTION
    const float curve = power((value + 0.055F) / 1.055F, 2.4F);
    return value > 0.04045F ? curve : value / 12.92F;
}

float to_gamma(float value) {
    COMFYD_NO_CONTRACTION
    constexpr float kThreshold = 0.0031308F;
    const float curve =
        1.055F * power(larger(value, kThreshold), static_cast<float>(1.0 / 2.4)) - 0.055F;
    return value > kThreshold ? curve : 12.92F * value;
}

float row_times(const std::array<float, 3>& row, float a, float b, float c) {
    return std::fma(row[2], c, std::fma(row[1], b, row[0] * a));
}

float root(float value, const LabSpace& space) {
    COMFYD_NO_CONTRACTION
    const float curve = power(larger(value, space.threshold), static_cast<float>(1.0 / 3.0));
    const float line = (space.line_factor * value + space.line_shift) / space.line_divisor;
    return value > space.threshold ? curve : line;
}

float cube(float value, const LabSpace& space) {
    COMFYD_NO_CONTRACTION
    const float line = (space.back_factor * value + space.back_shift) / space.back_divisor;
    return value > space.back_threshold ? value * value * value : line;
}

}  // namespace

const LabSpace& kornia_lab() {
    static const LabSpace kSpace{
        .to_xyz =
            {{{0.412453F, 0.357580F, 0.180423F},
              {0.212671F, 0.715160F, 0.072169F},
              {0.019334F, 0.119193F, 0.950227F}}},
        .from_xyz =
            {{{3.2404813432005266F, -1.5371515162713185F, -0.4985363261688878F},
              {-0.9692549499965682F, 1.8759900014898907F, 0.0415559265582928F},
              {0.0556466391351772F, -0.2040413383665112F, 1.0573110696453443F}}},
        .white_x = 0.95047F,
        .white_z = 1.08883F,
        .threshold = 0.008856F,
        .line_factor = 7.787F,
        .line_shift = static_cast<float>(4.0 / 29.0),
        .line_divisor = 1.0F,
        .back_threshold = 0.2068966F,
        .back_factor = 1.0F,
        .back_shift = static_cast<float>(-4.0 / 29.0),
        .back_divisor = 7.787F,
        .z_not_negative = true,
    };
    return kSpace;
}

const LabSpace& seedvr_lab() {
    constexpr double kDelta = 6.0 / 29.0;
    constexpr double kKappa = 24389.0 / 27.0;
    static const LabSpace kSpace{
        .to_xyz =
            {{{0.4124564F, 0.3575761F, 0.1804375F},
              {0.2126729F, 0.7151522F, 0.0721750F},
              {0.0193339F, 0.1191920F, 0.9503041F}}},
        .from_xyz =
            {{{3.2404542F, -1.5371385F, -0.4985314F},
              {-0.9692660F, 1.8760108F, 0.0415560F},
              {0.0556434F, -0.2040259F, 1.0572252F}}},
        .white_x = 0.95047F,
        .white_z = 1.08883F,
        .threshold = static_cast<float>(kDelta * kDelta * kDelta),
        .line_factor = static_cast<float>(kKappa),
        .line_shift = 16.0F,
        .line_divisor = 116.0F,
        .back_threshold = static_cast<float>(kDelta),
        .back_factor = 116.0F,
        .back_shift = -16.0F,
        .back_divisor = static_cast<float>(kKappa),
        .z_not_negative = false,
    };
    return kSpace;
}

COMFYD_KERNEL void rgb_to_lab(
    const float* rgb, std::size_t plane, std::size_t count, const LabSpace& given, float* lab
) {
    COMFYD_NO_CONTRACTION
    const LabSpace space = given;
    for (std::size_t i = 0; i < count; ++i) {
        const float r = to_linear(rgb[i]);
        const float g = to_linear(rgb[i + plane]);
        const float b = to_linear(rgb[i + 2 * plane]);
        const float x = root(row_times(space.to_xyz[0], r, g, b) / space.white_x, space);
        const float y = root(row_times(space.to_xyz[1], r, g, b), space);
        const float z = root(row_times(space.to_xyz[2], r, g, b) / space.white_z, space);
        lab[i] = 116.0F * y - 16.0F;
        lab[i + plane] = 500.0F * (x - y);
        lab[i + 2 * plane] = 200.0F * (y - z);
    }
}

COMFYD_KERNEL void lab_to_rgb(
    const float* lab, std::size_t plane, std::size_t count, const LabSpace& given, float* rgb
) {
    COMFYD_NO_CONTRACTION
    const LabSpace space = given;
    for (std::size_t i = 0; i < count; ++i) {
        const float fy = (lab[i] + 16.0F) / 116.0F;
        const float fx = lab[i + plane] / 500.0F + fy;
        float fz = fy - lab[i + 2 * plane] / 200.0F;
        fz = space.z_not_negative && fz < 0.0F ? 0.0F : fz;
        const float x = cube(fx, space) * space.white_x;
        const float y = cube(fy, space);
        const float z = cube(fz, space) * space.white_z;
        rgb[i] = clamp_unit(to_gamma(row_times(space.from_xyz[0], x, y, z)));
        rgb[i + plane] = clamp_unit(to_gamma(row_times(space.from_xyz[1], x, y, z)));
        rgb[i + 2 * plane] = clamp_unit(to_gamma(row_times(space.from_xyz[2], x, y, z)));
    }
}

COMFYD_KERNEL void to_planes(
    const float* pixels, std::size_t count, std::size_t channels, std::size_t plane, float* planes
) {
    for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t i = 0; i < count; ++i) {
            planes[c * plane + i] = pixels[i * channels + c];
        }
    }
}

COMFYD_KERNEL void from_planes(
    const float* planes, std::size_t plane, std::size_t count, std::size_t channels, float* pixels
) {
    for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t i = 0; i < count; ++i) {
            pixels[i * channels + c] = planes[c * plane + i];
        }
    }
}

}  // namespace comfyd::engine
