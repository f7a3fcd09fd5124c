#include "engine/nodes/mask/support.hpp"

#include <algorithm>
#include <utility>

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
    auto picture = make_image(call, shape, [&](std::size_t row, float* into) {
        std::copy_n(mask.row(row), shape.width, into);
    });
    if (!picture) {
        return fail(std::move(picture.error()));
    }
    const auto scaled = resize(call, *picture, width, height, method, crop);
    if (!scaled) {
        return fail(scaled.error());
    }
    return make_mask(call, scaled->shape(), [&](std::size_t row, float* into) {
        std::copy_n(scaled->row(row), width, into);
    });
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
