#include <vector>

#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    std::vector<View> masks;
    ImageShape shape;
    for (const Call::Grown& grown : call.grown("masks")) {
        const MaskView mask = to_mask_view(grown.value);
        if (masks.empty()) {
            shape = mask.shape();
        }
        auto scaled = resize_mask(
            call, mask, shape.width, shape.height, ResizeMethod::bilinear, Crop::center
        );
        if (!scaled) {
            return fail(std::move(scaled.error()));
        }
        masks.push_back(std::move(*scaled));
    }
    if (masks.empty()) {
        return node_error("IndexError", "list index out of range");
    }
    auto joined = join_views(call, masks);
    if (!joined) {
        return fail(std::move(joined.error()));
    }
    return NodeResult{.outputs = {MaskView(std::move(*joined))}};
}

}  // namespace

NodeClass batch_masks() {
    return {
        .name = "BatchMasksNode",
        .description = "Puts masks into one batch, scaled to the size of the first.",
        .execute = &compute,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
