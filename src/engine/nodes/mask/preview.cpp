#include <utility>

#include "engine/nodes/files/save.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute(Call& call) {
    const Mask& mask = call.mask("mask");
    ImageShape shape = mask.shape();
    shape.channels = 3;
    const auto picture = make_image(call, shape, [&](std::size_t row, float* into) {
        const float* from = mask.row(row);
        for (std::size_t i = 0; i < shape.row_floats(); ++i) {
            into[i] = from[i / 3];
        }
    });
    if (!picture) {
        return fail(picture.error());
    }
    auto ui = preview_ui(call, *picture, true);
    if (!ui) {
        return fail(std::move(ui.error()));
    }
    return NodeResult{.outputs = {mask}, .ui = std::move(*ui)};
}

}  // namespace

NodeClass mask_preview() {
    return {
        .name = "MaskPreview", .description = "Shows a mask without saving it.", .execute = &execute
    };
}

}  // namespace comfyd::engine::nodes
