// The two families of ColorTransfer: by the statistics of CIELAB colours, and by histograms.
#pragma once

#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {

enum class Baseline { per_frame, uniform, target_frame };

struct Transfer {
    const Image& target;
    const Image& reference;
    Baseline baseline = Baseline::per_frame;
    std::size_t frame = 0;  // of Baseline::target_frame
    double strength = 1;
};

Result<Image> transfer_by_lab(const Call& call, const Transfer& transfer, bool covariance);
Result<Image> transfer_by_histogram(const Call& call, const Transfer& transfer);

// torch.lerp().
float lerp(float start, float end, float weight);

}  // namespace comfyd::engine::nodes
