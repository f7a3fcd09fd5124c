#include <algorithm>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/bytes.hpp"
#include "engine/pixels/random.hpp"

namespace comfyd::engine::nodes {
namespace {

// `place(room)` says how much of the surplus lies before the crop, first along x, then along y.
template <class Place>
Result<NodeResult> cropped(Call& call, Place place) {
    const Image& image = call.image("images");
    const ImageShape& shape = image.shape();
    if (auto single = expect_single(image); !single) {
        return fail(std::move(single.error()));
    }
    Box box;
    box.width = std::min(shape.width, call.size("width"));
    box.height = std::min(shape.height, call.size("height"));
    box.x = place(shape.width - box.width);
    box.y = place(shape.height - box.height);
    auto part = cut(call, image, box);
    if (part) {
        part = rounded_to_bytes(call, *part);
    }
    if (!part) {
        return fail(std::move(part.error()));
    }
    return NodeResult{.outputs = {std::move(*part)}};
}

Result<NodeResult> from_center(Call& call) {
    return cropped(call, [](std::size_t room) { return room / 2; });
}

Result<NodeResult> at_random(Call& call) {
    NumpyRandom random(call.seed("seed"));
    return cropped(call, [&](std::size_t room) { return random.below(room + 1); });
}

}  // namespace

NodeClass center_crop_images() {
    return {
        .name = "CenterCropImages",
        .description = "Cuts the middle out.",
        .execute = &from_center,
    };
}

NodeClass random_crop_images() {
    return {
        .name = "RandomCropImages",
        .description = "Cuts a rectangle out at a place that the seed decides.",
        .execute = &at_random,
    };
}

}  // namespace comfyd::engine::nodes
