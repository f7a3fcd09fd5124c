// SplitImageWithAlpha and JoinImageWithAlpha. A mask is 1 where a picture is transparent.
#include <algorithm>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute_split(Call& call) {
    const ImageView image = call.image_view("image");
    const ImageShape& shape = image.shape();
    const bool has_alpha = shape.channels > 3;
    const View alpha = image.channel(has_alpha ? 3 : 0);
    auto mask = make_mask(call, shape, [&](std::size_t row, float* into) {
        if (has_alpha) {
            alpha.copy_row(row, into);
            invert(into, shape.width);
        } else {
            std::fill_n(into, shape.width, 0.0F);
        }
    });
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    ImageView colors(image.channels(std::min<std::size_t>(3, shape.channels)));
    return NodeResult{.outputs = {std::move(colors), std::move(*mask)}};
}

Result<NodeResult> execute_join(Call& call) {
    const ImageView image = call.image_view("image");
    const ImageShape& shape = image.shape();
    const auto alpha = resize_mask(
        call,
        call.mask_view("alpha"),
        shape.width,
        shape.height,
        ResizeMethod::bilinear,
        Crop::disabled
    );
    if (!alpha) {
        return fail(alpha.error());
    }
    const std::size_t colors = std::min<std::size_t>(3, shape.channels);
    const std::size_t pictures = shape.batch;
    const std::size_t masks = alpha->shape().batch;
    if ((pictures == 0) != (masks == 0)) {
        return node_error("ZeroDivisionError", "division by zero");
    }
    // The shorter of the two starts again at its end.
    const ImageShape joined{std::max(pictures, masks), shape.height, shape.width, colors + 1};
    return as_output(make_image(call, joined, [&](std::size_t row, float* into) {
        std::vector<float> image_row;
        std::vector<float> alpha_row;
        const float* from = image.row(row % (pictures * shape.height), image_row);
        const float* mask = alpha->row(row % (masks * shape.height), alpha_row);
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
        .execute = &execute_split,
        .reads_views = true
    };
}

NodeClass join_image_with_alpha() {
    return {
        .name = "JoinImageWithAlpha",
        .description = "Makes a picture transparent where a mask says so.",
        .execute = &execute_join,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
