#include <algorithm>
#include <utility>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// All with the channels of the richest one and the size of the first one.
Result<NodeResult> batched(const Call& call, std::vector<Image> images) {
    std::size_t channels = 0;
    for (const Image& image : images) {
        channels = std::max(channels, image.shape().channels);
    }
    const ImageShape size = images[0].shape();
    for (Image& image : images) {
        auto fitting = with_channels(call, image, channels);
        if (fitting && (image.shape().width != size.width || image.shape().height != size.height)) {
            fitting = resize(
                call, *fitting, size.width, size.height, ResizeMethod::bilinear, Crop::center
            );
        }
        if (!fitting) {
            return fail(std::move(fitting.error()));
        }
        image = std::move(*fitting);
    }
    auto out = join(call, images);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

Result<NodeResult> of_two(Call& call) {
    return batched(call, {call.image("image1"), call.image("image2")});
}

Result<NodeResult> of_many(Call& call) {
    std::vector<Image> images;
    for (const Call::Grown& grown : call.grown("images")) {
        images.push_back(std::get<Image>(grown.value));
    }
    if (images.empty()) {
        return NodeResult{.outputs = {None{}}};
    }
    return batched(call, std::move(images));
}

}  // namespace

NodeClass image_batch() {
    return {
        .name = "ImageBatch",
        .description = "Puts two pictures into one batch; the second takes the first one's size.",
        .execute = &of_two,
    };
}

NodeClass batch_images() {
    return {
        .name = "BatchImagesNode",
        .description = "Puts pictures into one batch; all take the first one's size.",
        .execute = &of_many,
    };
}

}  // namespace comfyd::engine::nodes
