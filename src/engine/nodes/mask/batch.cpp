#include <algorithm>
#include <vector>

#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute(Call& call) {
    std::vector<Mask> masks;
    ImageShape shape;
    for (const Call::Grown& grown : call.grown("masks")) {
        const Mask& mask = std::get<Mask>(grown.value);
        if (masks.empty()) {
            shape = mask.shape();
            shape.batch = 0;
        }
        auto scaled = resize_mask(
            call, mask, shape.width, shape.height, ResizeMethod::bilinear, Crop::center
        );
        if (!scaled) {
            return fail(std::move(scaled.error()));
        }
        shape.batch += scaled->shape().batch;
        masks.push_back(std::move(*scaled));
    }
    std::vector<const float*> rows;
    rows.reserve(shape.rows());
    for (const Mask& mask : masks) {
        for (std::size_t row = 0; row < mask.shape().rows(); ++row) {
            rows.push_back(mask.row(row));
        }
    }
    return as_output(make_mask(call, shape, [&](std::size_t row, float* into) {
        std::copy_n(rows[row], shape.width, into);
    }));
}

}  // namespace

NodeClass batch_masks() {
    return {
        .name = "BatchMasksNode",
        .description = "Puts masks into one batch, scaled to the size of the first.",
        .execute = &execute
    };
}

}  // namespace comfyd::engine::nodes
