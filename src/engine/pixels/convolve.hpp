// Two-dimensional filters as PyTorch computes them: every output value is one chain of
// multiplications and additions over the window, row by row.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/pixels/pictures.hpp"

namespace comfyd::engine {

// A window of weights, row by row; both sides are odd.
struct Filter {
    std::size_t width = 0;
    std::size_t height = 0;
    std::vector<float> weights;
    bool fused = true;     // each multiplication with its addition, in one rounding
    bool clamped = false;  // results are brought into 0..1

    std::size_t reach_x() const { return width / 2; }
    std::size_t reach_y() const { return height / 2; }
};

enum class Border { reflect, replicate };

// Fails as PyTorch does where the picture is too small to be reflected.
Result<Image> convolve(const Call& call, const Image& image, const Filter& filter, Border border);

// ComfyUI's bell: `side` x `side` weights that sum to 1, `sigma` relative to half the side.
Filter gaussian_filter(std::size_t side, double sigma);

}  // namespace comfyd::engine
