#include <algorithm>
#include <memory>
#include <string>

#include "engine/nodes/call.hpp"
#include "engine/nodes/image/clip.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kSideStep = 16;  // of the model
constexpr std::size_t kFrameStep = 4;  // likewise, after the first frame
constexpr std::size_t kColors = 3;

std::size_t rounded_up(std::size_t value, std::size_t step) {
    return (value + step - 1) / step * step;
}

COMFYD_KERNEL void clamp(float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = clamp_unit(values[i]);
    }
}

// Black to the right and below, the last frame again at the end.
Result<Image> padded(const Call& call, const View& from) {
    const ImageShape& shape = from.shape();
    auto out = call.new_image(
        {1 + rounded_up(shape.batch - 1, kFrameStep),
         rounded_up(shape.height, kSideStep),
         rounded_up(shape.width, kSideStep),
         shape.channels}
    );
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape& size = out->shape();
    auto done =
        call.for_rows(size.rows(), size.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                const std::size_t frame = std::min(row / size.height, shape.batch - 1);
                const std::size_t y = row % size.height;
                const std::size_t filled = y < shape.height ? shape.row_floats() : 0;
                float* into = out->row(row);
                if (filled > 0) {
                    from.copy_row(frame * shape.height + y, into);
                    clamp(into, filled);
                }
                std::fill(into + filled, into + size.row_floats(), 0.0F);
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<NodeResult> compute(Call& call) {
    const Clip* clip = as_clip(call.value("resized_images"));
    const ImageView images =
        clip != nullptr ? ImageView(clip->frames) : call.image_view("resized_images");
    const ImageShape& shape = images.shape();
    const std::size_t shorter = std::min(shape.width, shape.height);
    if (shorter < 2) {
        return node_error(
            "ValueError",
            "SeedVR2Preprocess: input shorter edge must be at least 2 pixels; got " +
                std::to_string(shorter) + "."
        );
    }
    if (shape.batch < 1) {
        return node_error("ValueError", "SeedVR2Preprocess expected at least one frame.");
    }
    auto out = padded(call, images.channels(std::min(kColors, shape.channels)));
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::make_shared<const Clip>(std::move(*out))}};
}

}  // namespace

NodeClass seedvr2_preprocess() {
    return {
        .name = "SeedVR2Preprocess",
        .description = "Brings pictures to the sizes and the number of frames that SeedVR2 takes.",
        .execute = &compute,
        .reads_views = true,
    };
}

}  // namespace comfyd::engine::nodes
