#include "engine/pictures/resize_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

constexpr float kCubicA = -0.75F;
constexpr int kLanczosBits = 22;
constexpr double kLanczosSupport = 3.0;

float ratio(std::size_t in, std::size_t out) {
    return static_cast<float>(in) / static_cast<float>(out);
}

// Where the middle of output pixel `i` lies between the source pixels.
float source_position(float scale, std::size_t i) {
    return std::fma(scale, static_cast<float>(i) + 0.5F, -0.5F);
}

float cubic_near(float x) {
    COMFYD_NO_CONTRACTION
    const float inner = std::fma(kCubicA + 2.0F, x, -(kCubicA + 3.0F));
    return inner * x * x + 1.0F;
}

float cubic_far(float x) {
    COMFYD_NO_CONTRACTION
    const float inner = kCubicA * x - 5.0F * kCubicA;
    return std::fma(inner, x, 8.0F * kCubicA) * x - 4.0F * kCubicA;
}

double sinc(double x) {
    if (x == 0.0) {
        return 1.0;
    }
    x *= std::numbers::pi;
    return std::sin(x) / x;
}

double lanczos(double x) {
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

std::uint8_t to_byte(std::int32_t sum) {
    return static_cast<std::uint8_t>(std::clamp(sum >> kLanczosBits, 0, 255));
}

}  // namespace

std::vector<std::size_t> nearest_exact_indices(std::size_t in, std::size_t out) {
    std::vector<std::size_t> indices(out);
    const float scale = ratio(in, out);
    for (std::size_t i = 0; i < out; ++i) {
        const float position = std::floor((static_cast<float>(i) + 0.5F) * scale);
        indices[i] = std::min(static_cast<std::size_t>(position), in - 1);
    }
    return indices;
}

std::vector<Span> area_spans(std::size_t in, std::size_t out) {
    std::vector<Span> spans(out);
    for (std::size_t i = 0; i < out; ++i) {
        spans[i] = Span{i * in / out, ((i + 1) * in + out - 1) / out};
    }
    return spans;
}

COMFYD_KERNEL void area_row(
    const Window& window, Span rows, const std::vector<Span>& columns, float* out
) {
    COMFYD_NO_CONTRACTION
    const std::size_t channels = window.channels;
    const auto height = static_cast<float>(rows.end - rows.begin);
    for (const Span& span : columns) {
        const auto width = static_cast<float>(span.end - span.begin);
        for (std::size_t c = 0; c < channels; ++c) {
            float sum = 0;
            for (std::size_t y = rows.begin; y < rows.end; ++y) {
                const float* row = window.row(y);
                for (std::size_t x = span.begin; x < span.end; ++x) {
                    sum += row[x * channels + c];
                }
            }
            *out++ = sum / height / width;
        }
    }
}

std::vector<LinearTap> linear_taps(std::size_t in, std::size_t out) {
    std::vector<LinearTap> taps(out);
    const float scale = ratio(in, out);
    for (std::size_t i = 0; i < out; ++i) {
        const float position = std::max(source_position(scale, i), 0.0F);
        LinearTap& tap = taps[i];
        tap.at[0] = std::min(static_cast<std::size_t>(position), in - 1);
        tap.at[1] = std::min(tap.at[0] + 1, in - 1);
        tap.weight[1] = std::min(position - static_cast<float>(tap.at[0]), 1.0F);
        tap.weight[0] = 1.0F - tap.weight[1];
    }
    return taps;
}

COMFYD_KERNEL void bilinear_row_by_points(
    const Window& window, const LinearTap& row, const std::vector<LinearTap>& columns, float* out
) {
    COMFYD_NO_CONTRACTION
    const std::size_t channels = window.channels;
    const float* upper = window.row(row.at[0]);
    const float* lower = window.row(row.at[1]);
    for (const LinearTap& column : columns) {
        const float w00 = row.weight[0] * column.weight[0];
        const float w01 = row.weight[0] * column.weight[1];
        const float w10 = row.weight[1] * column.weight[0];
        const float w11 = row.weight[1] * column.weight[1];
        const std::size_t left = column.at[0] * channels;
        const std::size_t right = column.at[1] * channels;
        for (std::size_t c = 0; c < channels; ++c) {
            const float first = std::fma(upper[left + c], w00, upper[right + c] * w01);
            *out++ = std::fma(lower[right + c], w11, std::fma(lower[left + c], w10, first));
        }
    }
}

COMFYD_KERNEL void bilinear_row_by_rows(
    const Window& window, const LinearTap& row, const std::vector<LinearTap>& columns, float* out
) {
    COMFYD_NO_CONTRACTION
    const std::size_t channels = window.channels;
    const float* upper = window.row(row.at[0]);
    const float* lower = window.row(row.at[1]);
    for (const LinearTap& column : columns) {
        const std::size_t left = column.at[0] * channels;
        const std::size_t right = column.at[1] * channels;
        const float w0 = column.weight[0];
        const float w1 = column.weight[1];
        for (std::size_t c = 0; c < channels; ++c) {
            const float above = std::fma(upper[left + c], w0, upper[right + c] * w1);
            const float below = std::fma(lower[left + c], w0, lower[right + c] * w1);
            *out++ = std::fma(above, row.weight[0], below * row.weight[1]);
        }
    }
}

std::vector<CubicTap> cubic_taps(std::size_t in, std::size_t out) {
    std::vector<CubicTap> taps(out);
    const float scale = ratio(in, out);
    const auto last = static_cast<std::int64_t>(in) - 1;
    for (std::size_t i = 0; i < out; ++i) {
        const float position = source_position(scale, i);
        const float whole = std::floor(position);
        const float x = std::clamp(position - whole, 0.0F, 1.0F);
        CubicTap& tap = taps[i];
        for (int k = 0; k < 4; ++k) {
            const std::int64_t at = static_cast<std::int64_t>(whole) + k - 1;
            tap.at[k] = static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, last));
        }
        tap.weight[0] = cubic_far(x + 1.0F);
        tap.weight[1] = cubic_near(x);
        tap.weight[2] = cubic_near(1.0F - x);
        tap.weight[3] = cubic_far((1.0F - x) + 1.0F);
    }
    return taps;
}

COMFYD_KERNEL void cubic_along_x(
    const float* row, std::size_t channels, const std::vector<CubicTap>& columns, float* out
) {
    COMFYD_NO_CONTRACTION
    for (const CubicTap& tap : columns) {
        const float* p0 = row + tap.at[0] * channels;
        const float* p1 = row + tap.at[1] * channels;
        const float* p2 = row + tap.at[2] * channels;
        const float* p3 = row + tap.at[3] * channels;
        for (std::size_t c = 0; c < channels; ++c) {
            const float inner = std::fma(p0[c], tap.weight[0], p1[c] * tap.weight[1]);
            *out++ = std::fma(p3[c], tap.weight[3], std::fma(p2[c], tap.weight[2], inner));
        }
    }
}

COMFYD_KERNEL void cubic_along_y(
    const float* const rows[4], const float weight[4], std::size_t count, float* out
) {
    COMFYD_NO_CONTRACTION
    const float w0 = weight[0];
    const float w1 = weight[1];
    const float w2 = weight[2];
    const float w3 = weight[3];
    const float* p0 = rows[0];
    const float* p1 = rows[1];
    const float* p2 = rows[2];
    const float* p3 = rows[3];
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = std::fma(p3[i], w3, std::fma(p2[i], w2, std::fma(p0[i], w0, p1[i] * w1)));
    }
}

std::vector<LanczosTap> lanczos_taps(std::size_t in, std::size_t out) {
    std::vector<LanczosTap> taps(out);
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double stretch = std::max(scale, 1.0);
    const double support = kLanczosSupport * stretch;
    const double shrink = 1.0 / stretch;
    for (std::size_t i = 0; i < out; ++i) {
        const double center = (static_cast<double>(i) + 0.5) * scale;
        const auto begin = static_cast<std::int64_t>(center - support + 0.5);
        const auto end = static_cast<std::int64_t>(center + support + 0.5);
        LanczosTap& tap = taps[i];
        tap.begin = static_cast<std::size_t>(std::max<std::int64_t>(begin, 0));
        const auto stop =
            static_cast<std::size_t>(std::min<std::int64_t>(end, static_cast<std::int64_t>(in)));
        std::vector<double> weights;
        double total = 0;
        for (std::size_t x = tap.begin; x < stop; ++x) {
            const double weight = lanczos((static_cast<double>(x) - center + 0.5) * shrink);
            weights.push_back(weight);
            total += weight;
        }
        tap.weights.reserve(weights.size());
        for (const double weight : weights) {
            const double normal = (total != 0.0 ? weight / total : weight) * (1 << kLanczosBits);
            tap.weights.push_back(
                static_cast<std::int32_t>(normal < 0 ? normal - 0.5 : normal + 0.5)
            );
        }
    }
    return taps;
}

COMFYD_KERNEL void lanczos_along_x(
    const std::uint8_t* row,
    std::size_t channels,
    const std::vector<LanczosTap>& columns,
    std::uint8_t* out
) {
    for (const LanczosTap& tap : columns) {
        for (std::size_t c = 0; c < channels; ++c) {
            std::int32_t sum = 1 << (kLanczosBits - 1);
            const std::uint8_t* pixel = row + tap.begin * channels + c;
            for (const std::int32_t weight : tap.weights) {
                sum += *pixel * weight;
                pixel += channels;
            }
            *out++ = to_byte(sum);
        }
    }
}

COMFYD_KERNEL void lanczos_along_y(
    const std::uint8_t* rows,
    std::size_t stride,
    const LanczosTap& tap,
    std::size_t count,
    std::uint8_t* out
) {
    for (std::size_t i = 0; i < count; ++i) {
        std::int32_t sum = 1 << (kLanczosBits - 1);
        for (std::size_t k = 0; k < tap.weights.size(); ++k) {
            sum += rows[k * stride + i] * tap.weights[k];
        }
        out[i] = to_byte(sum);
    }
}

}  // namespace comfyd::engine
