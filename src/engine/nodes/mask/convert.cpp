// Between masks and pictures: MaskToImage, ImageToMask, ImageColorToMask.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::array<std::string_view, 4> kChannels = {"red", "green", "blue", "alpha"};

tl::unexpected<Error> no_channel(std::size_t channel, std::size_t channels) {
    return node_error(
        "IndexError",
        "index " + std::to_string(channel) + " is out of bounds for dimension 3 with size " +
            std::to_string(channels)
    );
}

// 0..255; what is not a number converts as PyTorch's integers do on this kind of processor.
std::uint32_t level(float value) {
    const float scaled = std::nearbyint(clamp_unit(value) * 255.0F);
    return std::isnan(scaled) ? std::uint32_t{1} << 31 : static_cast<std::uint32_t>(scaled);
}

COMFYD_KERNEL void match_color(
    const float* from, std::size_t count, std::size_t channels, std::uint32_t color, float* into
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        const float* pixel = from + i * channels;
        const std::uint32_t packed =
            (level(pixel[0]) << 16) + (level(pixel[1]) << 8) + level(pixel[2]);
        into[i] = packed == color ? 1.0F : 0.0F;
    }
}

Result<NodeResult> execute_to_image(Call& call) {
    return NodeResult{.outputs = {ImageView(call.mask_view("mask").repeated(3))}};
}

Result<NodeResult> execute_to_mask(Call& call) {
    const ImageView image = call.image_view("image");
    const ImageShape& shape = image.shape();
    const auto channel = static_cast<std::size_t>(
        std::ranges::find(kChannels, std::string_view(call.text("channel"))) - kChannels.begin()
    );
    if (channel >= shape.channels) {
        return no_channel(channel, shape.channels);
    }
    return NodeResult{.outputs = {MaskView(image.channel(channel))}};
}

Result<NodeResult> execute_color(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    if (shape.channels < 3) {
        return no_channel(shape.channels, shape.channels);
    }
    const std::int64_t color = call.integer("color");
    const bool possible = color >= 0 && color <= std::numeric_limits<std::uint32_t>::max();
    return as_output(make_mask(call, shape, [&](std::size_t row, float* into) {
        if (possible) {
            match_color(
                image.row(row), shape.width, shape.channels, static_cast<std::uint32_t>(color), into
            );
        } else {
            std::fill_n(into, shape.width, 0.0F);
        }
    }));
}

}  // namespace

NodeClass mask_to_image() {
    return {
        .name = "MaskToImage",
        .description = "Shows a mask as a gray picture.",
        .execute = &execute_to_image,
        .reads_views = true
    };
}

NodeClass image_to_mask() {
    return {
        .name = "ImageToMask",
        .description = "Takes one channel of a picture as a mask.",
        .execute = &execute_to_mask,
        .reads_views = true
    };
}

NodeClass image_color_to_mask() {
    return {
        .name = "ImageColorToMask",
        .description = "Masks the pixels that have exactly one colour.",
        .execute = &execute_color
    };
}

}  // namespace comfyd::engine::nodes
