#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    const MaskView mask = call.mask_view("mask");
    const ImageShape& shape = mask.shape();
    const std::int64_t x = call.place("x");
    const std::int64_t y = call.place("y");
    const Slice columns = python_slice(x, x + call.place("width"), shape.width);
    const Slice rows = python_slice(y, y + call.place("height"), shape.height);
    const Box box{columns.first, rows.first, columns.count, rows.count};
    return NodeResult{.outputs = {MaskView(mask.cut(box))}};
}

}  // namespace

NodeClass crop_mask() {
    return {
        .name = "CropMask",
        .description = "Cuts a rectangle out of a mask; what lies outside of it is left away.",
        .execute = &compute,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
