#include <string>

#include "engine/nodes/call.hpp"
#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    const ImageShape shape = call.image_view("image").shape();
    call.show_text(
        "width: " + std::to_string(shape.width) + ", height: " + std::to_string(shape.height) +
        "\n batch size: " + std::to_string(shape.batch)
    );
    return NodeResult{
        .outputs =
            {static_cast<std::int64_t>(shape.width),
             static_cast<std::int64_t>(shape.height),
             static_cast<std::int64_t>(shape.batch)}
    };
}

}  // namespace

NodeClass get_image_size() {
    return {
        .name = "GetImageSize",
        .description = "Width, height and number of pictures.",
        .execute = &compute,
        .reads_views = true,
        .takes_empty = true,
    };
}

}  // namespace comfyd::engine::nodes
