#include <algorithm>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

// (k + 1) / n for the k-th line from the border.
std::vector<float> ramp(std::size_t lines) {
    std::vector<float> rates(lines);
    for (std::size_t k = 0; k < lines; ++k) {
        rates[k] = static_cast<float>(static_cast<double>(k + 1) / static_cast<double>(lines));
    }
    return rates;
}

COMFYD_KERNEL void scale_each(float* values, const float* rates, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] *= rates[i];
    }
}

COMFYD_KERNEL void scale_all(float* values, float rate, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] *= rate;
    }
}

Result<NodeResult> compute(Call& call) {
    const MaskView mask = call.mask_view("mask");
    const ImageShape& shape = mask.shape();
    const auto lines = [&](const char* side, std::size_t most) {
        const std::int64_t wanted = std::max<std::int64_t>(0, call.place(side));
        return ramp(std::min(static_cast<std::size_t>(wanted), most));
    };
    const std::vector<float> left = lines("left", shape.width);
    std::vector<float> right = lines("right", shape.width);
    std::ranges::reverse(right);
    const std::vector<float> top = lines("top", shape.height);
    const std::vector<float> bottom = lines("bottom", shape.height);
    return as_output(make_mask(call, shape, [&](std::size_t row, float* into) {
        mask.copy_row(row, into);
        scale_each(into, left.data(), left.size());
        scale_each(into + (shape.width - right.size()), right.data(), right.size());
        const std::size_t y = row % shape.height;
        if (y < top.size()) {
            scale_all(into, top[y], shape.width);
        }
        const std::size_t from_below = shape.height - 1 - y;
        if (from_below < bottom.size()) {
            scale_all(into, bottom[from_below], shape.width);
        }
    }));
}

}  // namespace

NodeClass feather_mask() {
    return {
        .name = "FeatherMask",
        .description = "Lets a mask fade out towards its borders.",
        .execute = &compute,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
