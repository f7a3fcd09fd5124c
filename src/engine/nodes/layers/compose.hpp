// Lays the pictures of a stack on a canvas.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "engine/nodes/layers/composition.hpp"
#include "engine/nodes/layers/frames.hpp"

namespace comfyd::engine::nodes {

// The canvas in linear light, with alpha.
Result<NewImage> compose(
    const Call& call, const std::vector<Frame>& frames, const Composition& composition
);

}  // namespace comfyd::engine::nodes
