#include "engine/nodes/image/color_transfer.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/nodes/image/image.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> compute(Call& call) {
    const Image& target = call.image("image_target");
    const double strength = call.number("strength");
    if (strength == 0 || !call.has("image_ref")) {
        return NodeResult{.outputs = {target}};
    }
    const std::string_view stats = call.text("source_stats");
    Transfer transfer{target, call.image("image_ref")};
    transfer.strength = strength;
    if (stats == "uniform") {
        transfer.baseline = Baseline::uniform;
    } else if (stats == "target_frame") {
        transfer.baseline = Baseline::target_frame;
        const auto batch = static_cast<std::int64_t>(target.shape().batch);
        const std::int64_t index = call.place("source_stats.target_index");
        transfer.frame = static_cast<std::size_t>(
            std::clamp<std::int64_t>(index < 0 ? index + batch : index, 0, batch - 1)
        );
    }
    const std::string_view method = call.text("method");
    auto out = method == "histogram" ? transfer_by_histogram(call, transfer)
                                     : transfer_by_lab(call, transfer, method == "mkl_lab");
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

}  // namespace

float lerp(float start, float end, float weight) {
    const bool near_start = std::abs(weight) < 0.5F;
    return std::fma(near_start ? weight : weight - 1.0F, end - start, near_start ? start : end);
}

NodeClass color_transfer() {
    return {
        .name = "ColorTransfer",
        .description = "Gives a picture the colours of another one.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
