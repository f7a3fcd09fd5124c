// MaskComposite: one mask worked into another at a place.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/nodes/kernel.hpp"
#include "engine/nodes/mask/mask.hpp"
#include "engine/nodes/mask/support.hpp"

namespace comfyd::engine::nodes {
namespace {

// `step` is 0 where one source pixel stands for a whole row.
using Operation = void (*)(float* into, const float* from, std::size_t step, std::size_t count);

COMFYD_KERNEL void multiply(float* into, const float* from, std::size_t step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = into[i] * from[i * step];
    }
}

COMFYD_KERNEL void add(float* into, const float* from, std::size_t step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = into[i] + from[i * step];
    }
}

COMFYD_KERNEL void subtract(float* into, const float* from, std::size_t step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = into[i] - from[i * step];
    }
}

// Rounded to the next whole number, anything but 0 counts as true, NaN included.
bool is_set(float value) {
    return std::nearbyint(value) != 0.0F;
}

COMFYD_KERNEL void logic_and(float* into, const float* from, std::size_t step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = (is_set(into[i]) && is_set(from[i * step])) ? 1.0F : 0.0F;
    }
}

COMFYD_KERNEL void logic_or(float* into, const float* from, std::size_t step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = (is_set(into[i]) || is_set(from[i * step])) ? 1.0F : 0.0F;
    }
}

COMFYD_KERNEL void logic_xor(float* into, const float* from, std::size_t step, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        into[i] = is_set(into[i]) != is_set(from[i * step]) ? 1.0F : 0.0F;
    }
}

COMFYD_KERNEL void clamp(float* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = clamp_unit(values[i]);
    }
}

constexpr std::pair<std::string_view, Operation> kOperations[] = {
    {"multiply", &multiply},
    {"add", &add},
    {"subtract", &subtract},
    {"and", &logic_and},
    {"or", &logic_or},
    {"xor", &logic_xor},
};

struct Overlap {
    Slice rows;     // of the destination
    Slice columns;  // likewise
    Slice source_rows;
    Slice source_columns;
};

Overlap overlap_of(
    const ImageShape& onto, const ImageShape& source, std::int64_t x, std::int64_t y
) {
    const std::int64_t right = std::min(
        x + static_cast<std::int64_t>(source.width), static_cast<std::int64_t>(onto.width)
    );
    const std::int64_t bottom = std::min(
        y + static_cast<std::int64_t>(source.height), static_cast<std::int64_t>(onto.height)
    );
    return {
        .rows = python_slice(y, bottom, onto.height),
        .columns = python_slice(x, right, onto.width),
        .source_rows = python_slice(0, bottom - y, source.height),
        .source_columns = python_slice(0, right - x, source.width),
    };
}

// The refusals of PyTorch where the two parts do not fit.
Result<> check_fit(const Overlap& overlap, std::size_t batch, std::size_t source_batch) {
    const std::size_t sizes[][2] = {
        {overlap.columns.count, overlap.source_columns.count},
        {overlap.rows.count, overlap.source_rows.count},
        {batch, source_batch},
    };
    for (int i = 0; i < 3; ++i) {
        if (!broadcasts(sizes[i][0], sizes[i][1])) {
            return size_mismatch(sizes[i][0], sizes[i][1], 2 - i);
        }
    }
    for (int i = 2; i >= 0; --i) {
        if (sizes[i][1] > sizes[i][0] && sizes[i][0] == 1) {
            const auto list = [&](int which) {
                std::string text = "[";
                for (int k = 2; k >= 0; --k) {
                    const std::size_t size =
                        which == 0 ? sizes[k][0] : (sizes[k][0] == 1 ? sizes[k][1] : sizes[k][0]);
                    text += std::to_string(size) + (k == 0 ? "]" : ", ");
                }
                return text;
            };
            return node_error(
                "RuntimeError",
                "The expanded size of the tensor (" + std::to_string(sizes[i][0]) +
                    ") must match the existing size (" + std::to_string(sizes[i][1]) +
                    ") at non-singleton dimension " + std::to_string(2 - i) +
                    ".  Target sizes: " + list(0) + ".  Tensor sizes: " + list(1)
            );
        }
    }
    return {};
}

Result<NodeResult> compute(Call& call) {
    const MaskView onto = call.mask_view("destination");
    const MaskView source = call.mask_view("source");
    const ImageShape& shape = onto.shape();
    const ImageShape& from = source.shape();
    const Overlap overlap = overlap_of(shape, from, call.place("x"), call.place("y"));
    auto fits = check_fit(overlap, shape.batch, from.batch);
    if (!fits) {
        return fail(std::move(fits.error()));
    }
    const Operation operation = chosen(kOperations, call.text("operation"));
    const std::size_t step = overlap.source_columns.count == 1 ? 0 : 1;
    return as_output(make_mask(call, shape, [&](std::size_t row, float* into) {
        onto.copy_row(row, into);
        const std::size_t y = row % shape.height;
        if (y >= overlap.rows.first && y - overlap.rows.first < overlap.rows.count) {
            const std::size_t picture = from.batch == 1 ? 0 : row / shape.height;
            const std::size_t line = overlap.source_rows.count == 1 ? 0 : y - overlap.rows.first;
            std::vector<float> scratch;
            operation(
                into + overlap.columns.first,
                source.row(picture * from.height + line, scratch),
                step,
                overlap.columns.count
            );
        }
        clamp(into, shape.width);
    }));
}

}  // namespace

NodeClass mask_composite() {
    return {
        .name = "MaskComposite",
        .description = "Works one mask into another at a place: arithmetic or logic.",
        .execute = &compute,
        .reads_views = true
    };
}

}  // namespace comfyd::engine::nodes
