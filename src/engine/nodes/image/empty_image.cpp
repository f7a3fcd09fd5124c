#include <array>

#include "engine/nodes/call.hpp"
#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    auto image =
        call.new_image({call.size("batch_size"), call.size("height"), call.size("width"), 3});
    if (!image) {
        return fail(std::move(image.error()));
    }
    const std::int64_t color = call.integer("color");
    const auto channel = [color](int shift) {
        return static_cast<float>(static_cast<double>(color >> shift & 0xFF) / 255.0);
    };
    const std::array<float, 3> rgb = {channel(16), channel(8), channel(0)};
    const ImageShape shape = image->shape();
    auto filled =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            float* out = image->row(first);
            float* const end = image->row(last);
            for (; out != end; out += 3) {
                out[0] = rgb[0];
                out[1] = rgb[1];
                out[2] = rgb[2];
            }
        });
    if (!filled) {
        return fail(std::move(filled.error()));
    }
    return NodeResult{.outputs = {std::move(*image).finish()}};
}

}  // namespace

NodeClass empty_image() {
    return {
        .name = "EmptyImage",
        .description = "A picture, or a batch of them, of one colour.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
