// SplitImageWithAlpha and JoinImageWithAlpha. A mask is 1 where a picture is transparent.
#include <algorithm>

#include "engine/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

// `channels` is at least 4.
void take_colors(const float* from, std::size_t channels, std::size_t pixels, float* rgb) {
    for (std::size_t i = 0; i < pixels; ++i, from += channels, rgb += 3) {
        rgb[0] = from[0];
        rgb[1] = from[1];
        rgb[2] = from[2];
    }
}

Result<NodeResult> execute_split(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    ImageShape colors = shape;
    colors.channels = std::min<std::size_t>(3, shape.channels);
    Result<Image> picture = image;
    if (colors != shape) {
        picture = make_image(call, colors, [&](std::size_t row, float* into) {
            take_colors(image.row(row), shape.channels, shape.width, into);
        });
    }
    if (!picture) {
        return fail(std::move(picture.error()));
    }
    auto mask = make_mask(call, shape, [&](std::size_t row, float* into) {
        const float* from = image.row(row);
        for (std::size_t x = 0; x < shape.width; ++x) {
            into[x] = shape.channels > 3 ? 1.0F - from[x * shape.channels + 3] : 0.0F;
        }
    });
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    return NodeResult{.outputs = {std::move(*picture), std::move(*mask)}};
}

Result<NodeResult> execute_join(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    const auto alpha = resize_mask(
        call, call.mask("alpha"), shape.width, shape.height, ResizeMethod::bilinear, Crop::disabled
    );
    if (!alpha) {
        return fail(alpha.error());
    }
    const std::size_t colors = std::min<std::size_t>(3, shape.channels);
    const ImageShape joined{
        std::min(shape.batch, alpha->shape().batch), shape.height, shape.width, colors + 1
    };
    return as_output(make_image(call, joined, [&](std::size_t row, float* into) {
        const float* from = image.row(row);
        const float* mask = alpha->row(row);
        for (std::size_t x = 0; x < shape.width; ++x) {
            std::copy_n(from + x * shape.channels, colors, into);
            into[colors] = 1.0F - mask[x];
            into += joined.channels;
        }
    }));
}

}  // namespace

NodeClass split_image_with_alpha() {
    return {
        .name = "SplitImageWithAlpha",
        .description =
            "Takes a picture apart into its colours and the mask of what is transparent.",
        .execute = &execute_split
    };
}

NodeClass join_image_with_alpha() {
    return {
        .name = "JoinImageWithAlpha",
        .description = "Makes a picture transparent where a mask says so.",
        .execute = &execute_join
    };
}

}  // namespace comfyd::engine::nodes
