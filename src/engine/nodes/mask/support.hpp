// What the mask nodes share: filling results row by row, scaling masks, and the tensor rules of
// PyTorch and Python (slices, broadcasting) whose refusals clients see as texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"
#include "engine/pictures/resize.hpp"

namespace comfyd::engine::nodes {

// Rows are counted through the whole batch; `fill` runs on the pool's threads.
using FillRow = std::function<void(std::size_t row, float* into)>;
Result<Mask> make_mask(const Call& call, const ImageShape& shape, const FillRow& fill);
Result<Image> make_image(const Call& call, const ImageShape& shape, const FillRow& fill);

template <class T>
Result<NodeResult> as_output(Result<T> value) {
    if (!value) {
        return fail(std::move(value.error()));
    }
    return NodeResult{.outputs = {Value(std::move(*value))}};
}

Result<Mask> resize_mask(
    const Call& call,
    const Mask& mask,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
);
// One of that size stays as it is.
Result<MaskView> resize_mask(
    const Call& call,
    const MaskView& mask,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
);

// Python's [start:stop] over `size` items: negative positions count from the end.
struct Slice {
    std::size_t first = 0;
    std::size_t count = 0;
};
Slice python_slice(std::int64_t start, std::int64_t stop, std::size_t size);

// PyTorch's words where two sizes of one dimension fit neither each other nor 1.
tl::unexpected<Error> size_mismatch(std::size_t a, std::size_t b, int dimension);
bool broadcasts(std::size_t a, std::size_t b);

// Each becomes 1 minus its value.
void invert(float* values, std::size_t count);

// PyTorch's clamp to 0..1, which lets NaN through.
inline float clamp_unit(float x) {
    return x < 0.0F ? 0.0F : x > 1.0F ? 1.0F : x;
}

}  // namespace comfyd::engine::nodes
