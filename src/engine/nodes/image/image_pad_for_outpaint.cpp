#include <algorithm>
#include <limits>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

struct Margins {
    std::size_t left = 0;
    std::size_t top = 0;
    std::size_t right = 0;
    std::size_t bottom = 0;
};

// For each position along one axis, how far it is from the nearest margin.
std::vector<std::size_t> distances(std::size_t side, bool before, bool after, std::size_t far) {
    std::vector<std::size_t> out(side, far);
    for (std::size_t i = 0; i < side; ++i) {
        if (before) {
            out[i] = std::min(out[i], i);
        }
        if (after) {
            out[i] = std::min(out[i], side - i);
        }
    }
    return out;
}

Result<Mask> mask_around(
    const Call& call, const ImageShape& inner, const Margins& margins, std::size_t feathering
) {
    auto mask = call.new_mask(
        1, inner.height + margins.top + margins.bottom, inner.width + margins.left + margins.right
    );
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    const bool soft =
        feathering > 0 && feathering * 2 < inner.height && feathering * 2 < inner.width;
    const std::size_t far = std::max(inner.height, inner.width);
    const auto columns = distances(inner.width, margins.left != 0, margins.right != 0, far);
    const auto rows = distances(inner.height, margins.top != 0, margins.bottom != 0, far);
    std::vector<float> ramp(soft ? feathering : 0);
    for (std::size_t d = 0; d < ramp.size(); ++d) {
        const double part = static_cast<double>(feathering - d) / static_cast<double>(feathering);
        ramp[d] = static_cast<float>(part * part);
    }
    const ImageShape shape = mask->shape();
    auto done = call.for_rows(shape.height, shape.width, [&](std::size_t first, std::size_t last) {
        for (std::size_t y = first; y < last; ++y) {
            float* out = mask->row(y);
            std::fill_n(out, shape.width, 1.0F);
            if (y < margins.top || y >= margins.top + inner.height) {
                continue;
            }
            const std::size_t above = rows[y - margins.top];
            for (std::size_t x = 0; x < inner.width; ++x) {
                const std::size_t distance = std::min(above, columns[x]);
                out[margins.left + x] = distance < ramp.size() ? ramp[distance] : 0.0F;
            }
        }
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*mask).finish();
}

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    const Margins margins{
        call.size("left"), call.size("top"), call.size("right"), call.size("bottom")
    };
    auto out = call.new_image(
        {shape.batch,
         shape.height + margins.top + margins.bottom,
         shape.width + margins.left + margins.right,
         shape.channels}
    );
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done = fill(call, *out, std::vector<float>(shape.channels, 0.5F));
    if (done) {
        done = lay(call, image, *out, margins.left, margins.top);
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    auto mask = mask_around(call, shape, margins, call.size("feathering"));
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish(), std::move(*mask)}};
}

}  // namespace

NodeClass image_pad_for_outpaint() {
    return {
        .name = "ImagePadForOutpaint",
        .description = "Adds gray margins and a mask of what is to be painted there.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
