#include <algorithm>

#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute(Call& call) {
    const Mask& mask = call.mask("mask");
    const ImageShape& shape = mask.shape();
    const std::int64_t x = call.integer("x");
    const std::int64_t y = call.integer("y");
    const Slice columns = python_slice(x, x + call.integer("width"), shape.width);
    const Slice rows = python_slice(y, y + call.integer("height"), shape.height);
    const ImageShape cut{shape.batch, rows.count, columns.count, 1};
    return as_output(make_mask(call, cut, [&](std::size_t row, float* into) {
        const std::size_t picture = row / rows.count;
        const float* from = mask.row(picture * shape.height + rows.first + row % rows.count);
        std::copy_n(from + columns.first, columns.count, into);
    }));
}

}  // namespace

NodeClass crop_mask() {
    return {
        .name = "CropMask",
        .description = "Cuts a rectangle out of a mask; what lies outside of it is left away.",
        .execute = &execute
    };
}

}  // namespace comfyd::engine::nodes
