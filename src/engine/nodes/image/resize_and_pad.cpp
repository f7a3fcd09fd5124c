#include <algorithm>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    if (shape.width == 0 || shape.height == 0) {
        return node_error("ZeroDivisionError", "division by zero");
    }
    const std::int64_t width = call.place("target_width");
    const std::int64_t height = call.place("target_height");
    const double factor = std::min(
        static_cast<double>(width) / static_cast<double>(shape.width),
        static_cast<double>(height) / static_cast<double>(shape.height)
    );
    const auto scaled = scale(
        call,
        image,
        python_int(static_cast<double>(shape.width) * factor),
        python_int(static_cast<double>(shape.height) * factor),
        resize_method(call.text("interpolation"))
    );
    if (!scaled) {
        return fail(scaled.error());
    }
    auto out = call.new_image(
        {shape.batch,
         static_cast<std::size_t>(height),
         static_cast<std::size_t>(width),
         shape.channels}
    );
    if (!out) {
        return fail(std::move(out.error()));
    }
    const float around = call.text("padding_color") == "black" ? 0.0F : 1.0F;
    auto done = fill(call, *out, std::vector<float>(shape.channels, around));
    if (done) {
        const std::size_t x = (out->shape().width - scaled->shape().width) / 2;
        const std::size_t y = (out->shape().height - scaled->shape().height) / 2;
        done = lay(call, *scaled, *out, x, y);
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass resize_and_pad_image() {
    return {
        .name = "ResizeAndPadImage",
        .description = "Scales to fit into a size and fills what remains around it.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
