// GrowMask: grey dilation (or erosion) by a 3x3 neighbourhood, again and again.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

struct Larger {
    static float pick(float a, float b) { return b > a ? b : a; }
};
struct Smaller {
    static float pick(float a, float b) { return b < a ? b : a; }
};

// At the border the pixel itself stands for the missing neighbour.
template <class Choice, bool kCorners>
inline void spread_row(
    const float* above, const float* row, const float* below, std::size_t width, float* into
) {
    const auto column = [&](std::size_t x) {
        return Choice::pick(Choice::pick(above[x], row[x]), below[x]);
    };
    const auto at = [&](std::size_t x, std::size_t left, std::size_t right) {
        const float side = kCorners ? Choice::pick(column(left), column(right))
                                    : Choice::pick(row[left], row[right]);
        into[x] = Choice::pick(column(x), side);
    };
    at(0, 0, width > 1 ? 1 : 0);
    for (std::size_t x = 1; x + 1 < width; ++x) {
        at(x, x - 1, x + 1);
    }
    if (width > 1) {
        at(width - 1, width - 2, width - 1);
    }
}

using SpreadRow =
    void (*)(const float*, const float*, const float*, std::size_t width, float* into);

COMFYD_KERNEL void grow_square(
    const float* above, const float* row, const float* below, std::size_t width, float* into
) {
    spread_row<Larger, true>(above, row, below, width, into);
}
COMFYD_KERNEL void shrink_square(
    const float* above, const float* row, const float* below, std::size_t width, float* into
) {
    spread_row<Smaller, true>(above, row, below, width, into);
}
COMFYD_KERNEL void grow_cross(
    const float* above, const float* row, const float* below, std::size_t width, float* into
) {
    spread_row<Larger, false>(above, row, below, width, into);
}
COMFYD_KERNEL void shrink_cross(
    const float* above, const float* row, const float* below, std::size_t width, float* into
) {
    spread_row<Smaller, false>(above, row, below, width, into);
}

Result<NodeResult> compute(Call& call) {
    const Mask& mask = call.mask("mask");
    const ImageShape& shape = mask.shape();
    const std::int64_t expand = call.place("expand");
    if (expand == 0 || shape.rows() * shape.width == 0) {
        return NodeResult{.outputs = {mask}};
    }
    const bool cross = call.flag("tapered_corners");
    const SpreadRow spread = expand > 0 ? (cross ? &grow_cross : &grow_square)
                                        : (cross ? &shrink_cross : &shrink_square);
    Mask current = mask;
    for (std::int64_t turn = 0; turn != expand; turn += expand > 0 ? 1 : -1) {
        std::atomic<bool> changed = false;
        auto next = make_mask(call, shape, [&](std::size_t row, float* into) {
            const std::size_t y = row % shape.height;
            const float* above = current.row(y == 0 ? row : row - 1);
            const float* below = current.row(y + 1 == shape.height ? row : row + 1);
            spread(above, current.row(row), below, shape.width, into);
            if (!changed.load(std::memory_order_relaxed) &&
                std::memcmp(into, current.row(row), shape.width * sizeof(float)) != 0) {
                changed.store(true, std::memory_order_relaxed);
            }
        });
        if (!next) {
            return fail(std::move(next.error()));
        }
        // Further turns would change nothing any more.
        if (!changed) {
            break;
        }
        current = std::move(*next);
    }
    return NodeResult{.outputs = {std::move(current)}};
}

}  // namespace

NodeClass grow_mask() {
    return {
        .name = "GrowMask",
        .description = "Widens a mask by pixels, or narrows it where the number is negative.",
        .execute = &compute
    };
}

}  // namespace comfyd::engine::nodes
