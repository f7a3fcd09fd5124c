#include "engine/nodes/mask/support.hpp"

#include <algorithm>
#include <utility>

#include "engine/nodes/kernel.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

template <class New>
auto fill_rows(const Call& call, Result<New> out, const FillRow& fill)
    -> Result<decltype(std::move(*out).finish())> {
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape& shape = out->shape();
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                fill(row, out->row(row));
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

}  // namespace

Result<Mask> make_mask(const Call& call, const ImageShape& shape, const FillRow& fill) {
    return fill_rows(call, call.new_mask(shape.batch, shape.height, shape.width), fill);
}

Result<Image> make_image(const Call& call, const ImageShape& shape, const FillRow& fill) {
    return fill_rows(call, call.new_image(shape), fill);
}

Result<Mask> resize_mask(
    const Call& call,
    const Mask& mask,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
) {
    const ImageShape& shape = mask.shape();
    if (shape.width == width && shape.height == height) {
        return mask;
    }
    if (shape.width == 0 || shape.height == 0 || width == 0 || height == 0) {
        return node_error(
            "RuntimeError",
            "Input and output sizes should be greater than 0, but got input (H: " +
                std::to_string(shape.height) + ", W: " + std::to_string(shape.width) +
                ") output (H: " + std::to_string(height) + ", W: " + std::to_string(width) + ")"
        );
    }
    return resize(call, as_image(mask), width, height, method, crop).map(&as_mask);
}

Result<MaskView> resize_mask(
    const Call& call,
    const MaskView& mask,
    std::size_t width,
    std::size_t height,
    ResizeMethod method,
    Crop crop
) {
    if (mask.shape().width == width && mask.shape().height == height) {
        return mask;
    }
    const auto whole = call.whole(mask);
    if (!whole) {
        return fail(whole.error());
    }
    return resize_mask(call, *whole, width, height, method, crop).map([](const Mask& resized) {
        return MaskView(resized);
    });
}

COMFYD_KERNEL void invert(float* values, std::size_t count) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = 1.0F - values[i];
    }
}

Slice python_slice(std::int64_t start, std::int64_t stop, std::size_t size) {
    const auto length = static_cast<std::int64_t>(size);
    const auto place = [length](std::int64_t at) {
        return std::clamp<std::int64_t>(at < 0 ? at + length : at, 0, length);
    };
    const std::int64_t first = place(start);
    const std::int64_t last = std::max(first, place(stop));
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)};
}

bool broadcasts(std::size_t a, std::size_t b) {
    return a == b || a == 1 || b == 1;
}

tl::unexpected<Error> size_mismatch(std::size_t a, std::size_t b, int dimension) {
    return node_error(
        "RuntimeError",
        "The size of tensor a (" + std::to_string(a) + ") must match the size of tensor b (" +
            std::to_string(b) + ") at non-singleton dimension " + std::to_string(dimension)
    );
}

}  // namespace comfyd::engine::nodes
