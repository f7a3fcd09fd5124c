#include <cmath>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> scaled_to(Call& call, double width, double height) {
    auto scaled = scale(
        call,
        call.image("image"),
        python_round(width),
        python_round(height),
        resize_method(call.text("upscale_method"))
    );
    if (!scaled) {
        return fail(std::move(scaled.error()));
    }
    return NodeResult{.outputs = {std::move(*scaled)}};
}

Result<NodeResult> by_factor(Call& call) {
    const ImageShape& shape = call.image("image").shape();
    const double factor = call.number("scale_by");
    return scaled_to(
        call, static_cast<double>(shape.width) * factor, static_cast<double>(shape.height) * factor
    );
}

Result<NodeResult> to_total_pixels(Call& call) {
    const ImageShape& shape = call.image("image").shape();
    const double total = call.number("megapixels") * 1024 * 1024;
    const double factor = std::sqrt(total / static_cast<double>(shape.width * shape.height));
    const auto steps = static_cast<double>(call.integer("resolution_steps"));
    const auto side = [&](std::size_t old) {
        return std::nearbyint(static_cast<double>(old) * factor / steps) * steps;
    };
    return scaled_to(call, side(shape.width), side(shape.height));
}

Result<NodeResult> to_max_dimension(Call& call) {
    const ImageShape& shape = call.image("image").shape();
    const auto width = static_cast<double>(shape.width);
    const auto height = static_cast<double>(shape.height);
    const auto largest = static_cast<double>(call.integer("largest_size"));
    return scaled_to(
        call,
        height > width ? width / height * largest : largest,
        width > height ? height / width * largest : largest
    );
}

}  // namespace

NodeClass image_scale_by() {
    return {
        .name = "ImageScaleBy",
        .description = "Scales both sides by the same factor.",
        .execute = &by_factor,
    };
}

NodeClass image_scale_to_total_pixels() {
    return {
        .name = "ImageScaleToTotalPixels",
        .description = "Scales to a number of pixels and keeps the proportions.",
        .execute = &to_total_pixels,
    };
}

NodeClass image_scale_to_max_dimension() {
    return {
        .name = "ImageScaleToMaxDimension",
        .description = "Scales the longer side to a length and keeps the proportions.",
        .execute = &to_max_dimension,
    };
}

}  // namespace comfyd::engine::nodes
