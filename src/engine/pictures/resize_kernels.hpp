// One output row of each scaling method, for resize.cpp. Pure functions over a window of one
// picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace comfyd::engine {

// The part of a source picture that is scaled.
struct Window {
    const float* pixels = nullptr;  // its first pixel
    std::size_t stride = 0;         // floats from row to row
    std::size_t width = 0;
    std::size_t height = 0;
    std::size_t channels = 0;

    const float* row(std::size_t y) const { return pixels + y * stride; }
};

std::vector<std::size_t> nearest_exact_indices(std::size_t in, std::size_t out);

struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
};
std::vector<Span> area_spans(std::size_t in, std::size_t out);
void area_row(const Window& window, Span rows, const std::vector<Span>& columns, float* out);

// Where one output coordinate reads along one axis, and with which weights.
struct LinearTap {
    std::size_t at[2] = {};
    float weight[2] = {};
};
std::vector<LinearTap> linear_taps(std::size_t in, std::size_t out);
// PyTorch's two orders of computation.
void bilinear_row_by_points(
    const Window& window, const LinearTap& row, const std::vector<LinearTap>& columns, float* out
);
void bilinear_row_by_rows(
    const Window& window, const LinearTap& row, const std::vector<LinearTap>& columns, float* out
);

struct CubicTap {
    std::size_t at[4] = {};
    float weight[4] = {};
};
std::vector<CubicTap> cubic_taps(std::size_t in, std::size_t out);
// One source row, scaled along x.
void cubic_along_x(
    const float* row, std::size_t channels, const std::vector<CubicTap>& columns, float* out
);
// Four such rows, combined.
void cubic_along_y(
    const float* const rows[4], const float weight[4], std::size_t count, float* out
);

// Pillow's fixed-point Lanczos along one axis.
struct LanczosTap {
    std::size_t begin = 0;
    std::vector<std::int32_t> weights;
};
std::vector<LanczosTap> lanczos_taps(std::size_t in, std::size_t out);
void lanczos_along_x(
    const std::uint8_t* row,
    std::size_t channels,
    const std::vector<LanczosTap>& columns,
    std::uint8_t* out
);
// `rows`: the first source row that the tap reads, `stride` bytes apart.
void lanczos_along_y(
    const std::uint8_t* rows,
    std::size_t stride,
    const LanczosTap& tap,
    std::size_t count,
    std::uint8_t* out
);

}  // namespace comfyd::engine
