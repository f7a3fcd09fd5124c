// Masks whose every pixel is computed for itself: SolidMask, InvertMask, ThresholdMask.
#include <algorithm>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

COMFYD_KERNEL void threshold(float* values, std::size_t count, float level) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = values[i] > level ? 1.0F : 0.0F;
    }
}

Result<NodeResult> execute_solid(Call& call) {
    const auto value = static_cast<float>(call.number("value"));
    const ImageShape shape{1, call.size("height"), call.size("width"), 1};
    return as_output(make_mask(call, shape, [&](std::size_t /*row*/, float* into) {
        std::fill_n(into, shape.width, value);
    }));
}

Result<NodeResult> execute_invert(Call& call) {
    return NodeResult{.outputs = {MaskView(call.mask_view("mask").inverted())}};
}

Result<NodeResult> execute_threshold(Call& call) {
    const MaskView mask = call.mask_view("mask");
    const std::size_t width = mask.shape().width;
    const auto level = static_cast<float>(call.number("value"));
    return as_output(make_mask(call, mask.shape(), [&](std::size_t row, float* into) {
        mask.copy_row(row, into);
        threshold(into, width, level);
    }));
}

}  // namespace

NodeClass solid_mask() {
    return {
        .name = "SolidMask",
        .description = "A mask with the same value everywhere.",
        .execute = &execute_solid
    };
}

NodeClass invert_mask() {
    return {
        .name = "InvertMask",
        .description = "Swaps what is masked with what is not.",
        .execute = &execute_invert,
        .reads_views = true,
        .takes_empty = true
    };
}

NodeClass threshold_mask() {
    return {
        .name = "ThresholdMask",
        .description = "Makes a hard mask: 1 above the value, 0 elsewhere.",
        .execute = &execute_threshold,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
