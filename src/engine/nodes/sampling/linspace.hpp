// torch.linspace in float32: counted from both ends, so that it is symmetric.
#pragma once

#include <cstddef>
#include <vector>

namespace comfyd::engine::nodes {

inline std::vector<float> linspace(float start, float end, std::size_t count) {
    std::vector<float> values(count);
    const float step = count > 1 ? (end - start) / static_cast<float>(count - 1) : 0.0F;
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = i < count / 2 || count == 1 ? start + step * static_cast<float>(i)
                                                : end - step * static_cast<float>(count - i - 1);
    }
    return values;
}

}  // namespace comfyd::engine::nodes
