#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/pictures.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

COMFYD_KERNEL void brighten(const float* from, std::size_t count, float factor, float* into) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = clamp_unit(from[i] * factor);
    }
}

COMFYD_KERNEL void spread(const float* from, std::size_t count, float factor, float* into) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = clamp_unit((from[i] - 0.5F) * factor + 0.5F);
    }
}

COMFYD_KERNEL void normalize(
    const float* from, std::size_t count, float mean, float deviation, float* into
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = (from[i] - mean) / deviation;
    }
}

Result<NodeResult> mapped(Call& call, const RowFunction& function) {
    auto out = map_values(call, call.image("images"), function);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

Result<NodeResult> brightness(Call& call) {
    const auto factor = static_cast<float>(call.number("factor"));
    return mapped(call, [=](const float* from, std::size_t count, float* into) {
        brighten(from, count, factor, into);
    });
}

Result<NodeResult> contrast(Call& call) {
    const auto factor = static_cast<float>(call.number("factor"));
    return mapped(call, [=](const float* from, std::size_t count, float* into) {
        spread(from, count, factor, into);
    });
}

Result<NodeResult> normalized(Call& call) {
    const auto mean = static_cast<float>(call.number("mean"));
    const auto deviation = static_cast<float>(call.number("std"));
    return mapped(call, [=](const float* from, std::size_t count, float* into) {
        normalize(from, count, mean, deviation, into);
    });
}

}  // namespace

NodeClass adjust_brightness() {
    return {
        .name = "AdjustBrightness",
        .description = "Multiplies every value and keeps it between 0 and 1.",
        .execute = &brightness,
    };
}

NodeClass adjust_contrast() {
    return {
        .name = "AdjustContrast",
        .description = "Moves every value away from the middle, or towards it.",
        .execute = &contrast,
    };
}

NodeClass normalize_images() {
    return {
        .name = "NormalizeImages",
        .description = "Subtracts a mean and divides by a standard deviation.",
        .execute = &normalized,
    };
}

}  // namespace comfyd::engine::nodes
