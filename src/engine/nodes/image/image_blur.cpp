#include "engine/kernel.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/pixels/convolve.hpp"
#include "engine/pixels/torch_math.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> blur(Call& call) {
    const auto radius = static_cast<std::size_t>(call.integer("blur_radius"));
    const Filter filter = gaussian_filter(radius * 2 + 1, call.number("sigma"));
    auto out = convolve(call, call.image("image"), filter, Border::reflect);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

// What the bell takes away around a pixel, its middle gives back.
Filter sharpening(std::size_t side, double sigma, double alpha) {
    COMFYD_NO_CONTRACTION
    Filter filter = gaussian_filter(side, sigma);
    const auto factor = static_cast<float>(-(alpha * 10));
    for (float& weight : filter.weights) {
        weight *= factor;
    }
    float& middle = filter.weights[filter.weights.size() / 2];
    middle = middle - torch_sum(filter.weights.data(), filter.weights.size()) + 1.0F;
    filter.clamped = true;
    return filter;
}

Result<NodeResult> sharpen(Call& call) {
    const auto radius = static_cast<std::size_t>(call.integer("sharpen_radius"));
    const Filter filter = sharpening(radius * 2 + 1, call.number("sigma"), call.number("alpha"));
    auto out = convolve(call, call.image("image"), filter, Border::reflect);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

}  // namespace

NodeClass image_blur() {
    return {
        .name = "ImageBlur",
        .description = "Softens a picture.",
        .execute = &blur,
    };
}

NodeClass image_sharpen() {
    return {
        .name = "ImageSharpen",
        .description = "Makes a picture crisper.",
        .execute = &sharpen,
    };
}

}  // namespace comfyd::engine::nodes
