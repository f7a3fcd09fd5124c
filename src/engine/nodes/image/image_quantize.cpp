#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/bytes.hpp"
#include "engine/pixels/palette.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kColorsMax = 256;
// That it takes to find the palette of a picture, its pixels included.
constexpr std::uint64_t kBytesPerPixel = 24;

// Values outside of 0..1 wrap around, as PyTorch's conversion does.
std::uint8_t wrapped_byte(float value) {
    const float scaled = value * 255.0F;
    constexpr float kLimit = 0x1p62F;
    if (!(scaled > -kLimit && scaled < kLimit)) {
        return 0;
    }
    return static_cast<std::uint8_t>(static_cast<std::int64_t>(scaled));
}

// Thresholds around 0.5 in an even pattern, `order` (a power of two) to a side.
std::vector<float> bayer_matrix(std::size_t order) {
    COMFYD_NO_CONTRACTION
    if (order == 1) {
        return {0.0F};
    }
    const std::size_t half = order / 2;
    const std::vector<float> inner = bayer_matrix(half);
    const auto cells = static_cast<float>(order * order);
    constexpr float kShift[2][2] = {{-1.5F, 0.5F}, {1.5F, -0.5F}};
    std::vector<float> out(order * order);
    for (std::size_t y = 0; y < order; ++y) {
        for (std::size_t x = 0; x < order; ++x) {
            const float base = cells * inner[y % half * half + x % half];
            out[y * order + x] = (base + kShift[y / half][x / half]) / cells;
        }
    }
    return out;
}

constexpr std::pair<std::string_view, std::size_t> kBayerOrders[] = {
    {"bayer-2", 2},
    {"bayer-4", 4},
    {"bayer-8", 8},
    {"bayer-16", 16},
};

void add_pattern(
    std::vector<Rgb>& pixels, std::size_t width, std::size_t order, std::size_t colors
) {
    COMFYD_NO_CONTRACTION
    const auto spread = static_cast<float>(2.0 * 256.0 / static_cast<double>(colors));
    std::vector<float> matrix = bayer_matrix(order);
    for (float& value : matrix) {
        value = spread * value + 0.5F;
    }
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        const float shift = matrix[i / width % order * order + i % width % order];
        for (std::uint8_t& channel : pixels[i]) {
            channel = static_cast<std::uint8_t>(
                std::clamp(static_cast<float>(channel) + shift, 0.0F, 255.0F)
            );
        }
    }
}

void reduce(
    std::vector<Rgb>& pixels, std::size_t width, std::size_t colors, std::string_view dither
) {
    const std::vector<Rgb> palette = median_cut(pixels, colors);
    PaletteMap map(palette);
    if (dither == "floyd-steinberg") {
        diffuse(pixels, width, map);
        return;
    }
    if (dither.starts_with("bayer")) {
        add_pattern(pixels, width, chosen(kBayerOrders, dither), palette.size());
    }
    for (Rgb& pixel : pixels) {
        pixel = map.nearest(pixel);
    }
}

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const ImageShape shape = image.shape();
    if (shape.channels != 3) {
        const std::string size =
            std::to_string(shape.height) + ", " + std::to_string(shape.width) + ", ";
        const std::string channels = std::to_string(shape.channels);
        return node_error(
            "RuntimeError",
            "The expanded size of the tensor (" + channels +
                ") must match the existing size (3) at non-singleton dimension 2.  Target sizes: "
                "[" +
                size + channels + "].  Tensor sizes: [" + size + "3]"
        );
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const std::size_t colors = call.size("colors");
    if (colors < 1 || colors > kColorsMax) {
        return node_error("ValueError", "bad number of colors");
    }
    const std::string_view dither = call.text("dither");
    const std::size_t count = shape.height * shape.width;
    auto done = call.for_each(shape.batch, [&](std::size_t picture) -> Result<> {
        const auto space = call.charge(count * kBytesPerPixel);
        if (!space) {
            return fail(space.error());
        }
        std::vector<Rgb> pixels(count);
        const float* from = image.picture(picture);
        for (Rgb& pixel : pixels) {
            pixel = {wrapped_byte(from[0]), wrapped_byte(from[1]), wrapped_byte(from[2])};
            from += 3;
        }
        reduce(pixels, shape.width, colors, dither);
        float* into = out->row(picture * shape.height);
        for (const Rgb& pixel : pixels) {
            into = std::ranges::transform(pixel, into, &from_byte).out;
        }
        return call.check_stopped();
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass image_quantize() {
    return {
        .name = "ImageQuantize",
        .description = "Reduces a picture to a number of colours.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
