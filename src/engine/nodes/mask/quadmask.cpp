// VOIDQuadmaskPreprocess: four levels (remove, overlap, affected, keep) out of a gray mask.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr float kDark = 128.0F;

// Whether no value is above 1, which means that the mask is not in 0..255 yet. NaN counts as above.
Result<bool> is_unit(const Call& call, const Mask& mask) {
    const ImageShape& shape = mask.shape();
    if (shape.rows() * shape.width == 0) {
        return node_error(
            "RuntimeError",
            "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        );
    }
    std::atomic<bool> above = false;
    auto done = call.for_rows(shape.rows(), shape.width, [&](std::size_t first, std::size_t last) {
        const float* end = mask.row(last);
        const bool found = std::any_of(mask.row(first), end, [](float x) { return !(x <= 1.0F); });
        if (found) {
            above.store(true, std::memory_order_relaxed);
        }
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return !above.load();
}

// into[x] = 1 where `from` has a dark pixel at most `radius` beside x.
void dark_nearby(
    const float* from, std::size_t width, float scale, std::size_t radius, float* into
) {
    std::size_t dark_until = 0;  // first x that no dark pixel so far reaches
    std::fill_n(into, width, 0.0F);
    for (std::size_t x = 0; x < width; ++x) {
        if (from[x] * scale < kDark) {
            const std::size_t begin = std::max(dark_until, x >= radius ? x - radius : 0);
            const std::size_t end = std::min(width, x + radius + 1);
            if (begin < end) {
                std::fill(into + begin, into + end, 1.0F);
            }
            dark_until = std::max(dark_until, end);
        }
    }
}

COMFYD_KERNEL void merge(float* into, const float* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = into[i] > from[i] ? into[i] : from[i];
    }
}

COMFYD_KERNEL void quantize(
    const float* from, const float* dilated, std::size_t count, float scale, float* into
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        float m = from[i] * scale;
        m = dilated[i] > 0.5F ? 0.0F : m;
        m = m <= 31.0F ? 0.0F : m;
        m = m > 31.0F && m <= 95.0F ? 63.0F : m;
        m = m > 95.0F && m <= 191.0F ? 127.0F : m;
        m = m > 191.0F ? 255.0F : m;
        into[i] = (255.0F - m) / 255.0F;
    }
}

Result<Mask> widen_dark(const Call& call, const Mask& mask, float scale, std::size_t radius) {
    const ImageShape& shape = mask.shape();
    if (radius == 0) {
        return make_mask(call, shape, [&](std::size_t /*row*/, float* into) {
            std::fill_n(into, shape.width, 0.0F);
        });
    }
    const auto sideways = make_mask(call, shape, [&](std::size_t row, float* into) {
        dark_nearby(mask.row(row), shape.width, scale, radius, into);
    });
    if (!sideways) {
        return fail(sideways.error());
    }
    return make_mask(call, shape, [&](std::size_t row, float* into) {
        const std::size_t y = row % shape.height;
        const std::size_t top = row - std::min(y, radius);
        const std::size_t bottom = row + std::min(shape.height - 1 - y, radius);
        std::copy_n(sideways->row(top), shape.width, into);
        for (std::size_t other = top + 1; other <= bottom; ++other) {
            merge(into, sideways->row(other), shape.width);
        }
    });
}

Result<NodeResult> compute(Call& call) {
    const Mask& mask = call.mask("mask");
    const auto unit = is_unit(call, mask);
    if (!unit) {
        return fail(unit.error());
    }
    const float scale = *unit ? 255.0F : 1.0F;
    const std::int64_t radius = std::max<std::int64_t>(0, call.place("dilate_width"));
    const auto dilated = widen_dark(call, mask, scale, static_cast<std::size_t>(radius));
    if (!dilated) {
        return fail(dilated.error());
    }
    const std::size_t width = mask.shape().width;
    return as_output(make_mask(call, mask.shape(), [&](std::size_t row, float* into) {
        quantize(mask.row(row), dilated->row(row), width, scale, into);
    }));
}

}  // namespace

NodeClass void_quadmask_preprocess() {
    return {
        .name = "VOIDQuadmaskPreprocess",
        .description = "Sorts a mask into the four levels that VOID inpainting expects.",
        .execute = &compute
    };
}

}  // namespace comfyd::engine::nodes
