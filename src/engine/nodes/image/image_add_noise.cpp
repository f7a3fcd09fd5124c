#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/pictures.hpp"
#include "engine/pixels/random.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

COMFYD_KERNEL void add_noise(const float* from, std::size_t count, float strength, float* noise) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        noise[i] = clamp_unit(from[i] + strength * noise[i]);
    }
}

Result<NodeResult> compute(Call& call) {
    const Image& image = call.image("image");
    const ImageShape shape = image.shape();
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    TorchNormal(call.seed("seed")).fill(out->data(), shape.floats(), [&call] {
        return call.stopped();
    });
    const auto strength = static_cast<float>(call.number("strength"));
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            add_noise(
                image.row(first), (last - first) * shape.row_floats(), strength, out->row(first)
            );
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass image_add_noise() {
    return {
        .name = "ImageAddNoise",
        .description = "Adds random grain that the seed decides.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
