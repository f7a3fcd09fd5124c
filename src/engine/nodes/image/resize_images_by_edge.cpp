#include "engine/nodes/image/image.hpp"
#include "engine/pixels/bytes.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> by_width_or_height(Call& call, bool by_width, std::int64_t edge) {
    const Image& image = call.image("images");
    if (auto fit = expect_pillow(image); !fit) {
        return fail(std::move(fit.error()));
    }
    const auto width = static_cast<double>(image.shape().width);
    const auto height = static_cast<double>(image.shape().height);
    const auto given = static_cast<double>(edge);
    auto scaled = scale(
        call,
        image,
        by_width ? edge : python_int(width * (given / height)),
        by_width ? python_int(height * (given / width)) : edge,
        ResizeMethod::lanczos
    );
    if (!scaled) {
        return fail(std::move(scaled.error()));
    }
    return NodeResult{.outputs = {std::move(*scaled)}};
}

Result<NodeResult> by_shorter(Call& call) {
    const ImageShape& shape = call.image("images").shape();
    return by_width_or_height(call, shape.width < shape.height, call.place("shorter_edge"));
}

Result<NodeResult> by_longer(Call& call) {
    const ImageShape& shape = call.image("images").shape();
    return by_width_or_height(call, shape.width > shape.height, call.place("longer_edge"));
}

}  // namespace

NodeClass resize_images_by_shorter_edge() {
    return {
        .name = "ResizeImagesByShorterEdge",
        .description = "Scales the shorter side to a length and keeps the proportions.",
        .execute = &by_shorter,
    };
}

NodeClass resize_images_by_longer_edge() {
    return {
        .name = "ResizeImagesByLongerEdge",
        .description = "Scales the longer side to a length and keeps the proportions.",
        .execute = &by_longer,
    };
}

}  // namespace comfyd::engine::nodes
