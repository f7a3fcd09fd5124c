#include <algorithm>
#include <cmath>

#include "engine/nodes/call.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/pictures/resize.hpp"

namespace comfyd::engine::nodes {
namespace {

// The side that was given as 0: in proportion, with Python's round().
std::size_t in_proportion(std::size_t side, std::size_t given, std::size_t old) {
    const double exact =
        static_cast<double>(side) * static_cast<double>(given) / static_cast<double>(old);
    return static_cast<std::size_t>(std::max(1.0, std::nearbyint(exact)));
}

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    std::size_t width = call.size("width");
    std::size_t height = call.size("height");
    if (width == 0 && height == 0) {
        return NodeResult{.outputs = {image}};
    }
    if (width == 0) {
        width = in_proportion(shape.width, height, shape.height);
    } else if (height == 0) {
        height = in_proportion(shape.height, width, shape.width);
    }
    const Crop crop = call.text("crop") == "center" ? Crop::center : Crop::disabled;
    auto scaled =
        resize(call, image, width, height, resize_method(call.text("upscale_method")), crop);
    if (!scaled) {
        return fail(std::move(scaled.error()));
    }
    return NodeResult{.outputs = {std::move(*scaled)}};
}

}  // namespace

NodeClass image_scale() {
    return {
        .name = "ImageScale",
        .description = "Scales to a size; a side of 0 follows the other one.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
