#include <vector>

#include "engine/call.hpp"
#include "engine/kernel.hpp"
#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

COMFYD_KERNEL void invert(const float* from, std::size_t count, float* into) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = 1.0F - from[i];
    }
}

Result<NodeResult> execute(Call& call) {
    const ImageView image = call.image_view("image");
    auto out = call.new_image(image.shape());
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape shape = image.shape();
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            std::vector<float> scratch;
            for (std::size_t row = first; row < last; ++row) {
                invert(image.row(row, scratch), shape.row_floats(), out->row(row));
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass image_invert() {
    return {
        .name = "ImageInvert",
        .description = "Every channel becomes 1 minus its value.",
        .execute = &execute,
        .reads_views = true,
    };
}

}  // namespace comfyd::engine::nodes
