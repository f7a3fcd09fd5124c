#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/convolve.hpp"
#include "engine/pixels/torch_math.hpp"

namespace comfyd::engine::nodes {
namespace {

// A filter of the largest radius has four million weights, which is a second for every 64 values.
constexpr std::size_t kRadiusMax = 1024;

// How far the bell reaches; nothing happens without any reach.
std::size_t radius_of(const Call& call, std::string_view input) {
    const std::size_t radius = call.size(input);
    if (radius > kRadiusMax) {
        throw NodeFailure(
            "ValueError",
            "'" + std::string(input) + "' is " + std::to_string(radius) + "; at most " +
                std::to_string(kRadiusMax) + " pixels can be computed here"
        );
    }
    return radius;
}

Result<NodeResult> blur(Call& call) {
    const std::size_t radius = radius_of(call, "blur_radius");
    if (radius == 0) {
        return NodeResult{.outputs = {call.image("image")}};
    }
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
    const std::size_t radius = radius_of(call, "sharpen_radius");
    if (radius == 0) {
        return NodeResult{.outputs = {call.image("image")}};
    }
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
