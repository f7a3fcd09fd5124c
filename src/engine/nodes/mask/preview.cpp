#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/mask/mask.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    const MaskView mask = call.mask_view("mask");
    auto ui = preview_ui(call, ImageView(mask.repeated(3)), true);
    if (!ui) {
        return fail(std::move(ui.error()));
    }
    return NodeResult{.outputs = {mask}, .ui = std::move(*ui)};
}

}  // namespace

NodeClass mask_preview() {
    return {
        .name = "MaskPreview",
        .description = "Shows a mask without saving it.",
        .execute = &compute,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
