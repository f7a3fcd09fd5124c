#include <algorithm>
#include <utility>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<View> fitting(const Call& call, const ImageView& image, const ImageShape& wanted) {
    const ImageShape& shape = image.shape();
    const bool has_size = shape.width == wanted.width && shape.height == wanted.height;
    if (has_size && shape.channels == wanted.channels) {
        return image;
    }
    auto out = call.whole(image);
    if (out) {
        out = with_channels(call, *out, wanted.channels);
    }
    if (out && !has_size) {
        out = resize(call, *out, wanted.width, wanted.height, ResizeMethod::bilinear, Crop::center);
    }
    if (!out) {
        return fail(std::move(out.error()));
    }
    return View(*out);
}

// All with the channels of the richest one and the size of the first one.
Result<NodeResult> batched(const Call& call, std::vector<ImageView> images) {
    ImageShape wanted = images[0].shape();
    for (const ImageView& image : images) {
        wanted.channels = std::max(wanted.channels, image.shape().channels);
    }
    std::vector<View> parts;
    for (const ImageView& image : images) {
        auto part = fitting(call, image, wanted);
        if (!part) {
            return fail(std::move(part.error()));
        }
        parts.push_back(std::move(*part));
    }
    auto out = join_views(call, parts);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {ImageView(std::move(*out))}};
}

Result<NodeResult> of_two(Call& call) {
    return batched(call, {call.image_view("image1"), call.image_view("image2")});
}

Result<NodeResult> of_many(Call& call) {
    std::vector<ImageView> images;
    for (const Call::Grown& grown : call.grown("images")) {
        images.push_back(to_image_view(grown.value));
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
        .reads_views = true,
    };
}

NodeClass batch_images() {
    return {
        .name = "BatchImagesNode",
        .description = "Puts pictures into one batch; all take the first one's size.",
        .execute = &of_many,
        .reads_views = true,
    };
}

}  // namespace comfyd::engine::nodes
