#include "engine/nodes/call.hpp"
#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    return NodeResult{.outputs = {ImageView(call.image_view("image").inverted())}};
}

}  // namespace

NodeClass image_invert() {
    return {
        .name = "ImageInvert",
        .description = "Every channel becomes 1 minus its value.",
        .execute = &compute,
        .reads_views = true,
        .takes_empty = true,
    };
}

}  // namespace comfyd::engine::nodes
