#include "engine/call.hpp"
#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute(Call& call) {
    const Image& image = call.image("image");
    auto out = call.new_image(image.shape());
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape shape = image.shape();
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            const float* from = image.row(first);
            float* into = out->row(first);
            const std::size_t count = (last - first) * shape.row_floats();
            for (std::size_t i = 0; i < count; ++i) {
                into[i] = 1.0F - from[i];
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
    };
}

}  // namespace comfyd::engine::nodes
