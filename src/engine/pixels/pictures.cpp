#include "engine/pixels/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace comfyd::engine {

Result<Image> cut(const Call& call, const Image& image, const Box& box) {
    const ImageShape& shape = image.shape();
    COMFYD_ASSERT(box.x + box.width <= shape.width && box.y + box.height <= shape.height);
    if (box.width == shape.width && box.height == shape.height) {
        return image;
    }
    auto out = call.new_image({shape.batch, box.height, box.width, shape.channels});
    if (!out) {
        return fail(std::move(out.error()));
    }
    const std::size_t floats = out->shape().row_floats();
    auto done =
        call.for_rows(out->shape().rows(), floats, [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                const std::size_t source =
                    row / box.height * shape.height + box.y + row % box.height;
                std::copy_n(image.row(source) + box.x * shape.channels, floats, out->row(row));
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> pictures(const Call& call, const Image& image, std::size_t first, std::size_t count) {
    ImageShape shape = image.shape();
    COMFYD_ASSERT(first + count <= shape.batch);
    if (count == shape.batch) {
        return image;
    }
    shape.batch = count;
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const float* from = image.picture(first);
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t begin, std::size_t end) {
            std::copy(
                from + begin * shape.row_floats(), from + end * shape.row_floats(), out->row(begin)
            );
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> with_channels(const Call& call, const Image& image, std::size_t channels) {
    const ImageShape& shape = image.shape();
    if (shape.channels == channels) {
        return image;
    }
    auto out = call.new_image({shape.batch, shape.height, shape.width, channels});
    if (!out) {
        return fail(std::move(out.error()));
    }
    const std::size_t shared = std::min(shape.channels, channels);
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            const float* from = image.row(first);
            float* into = out->row(first);
            for (std::size_t pixel = 0; pixel < (last - first) * shape.width; ++pixel) {
                std::copy_n(from, shared, into);
                std::fill_n(into + shared, channels - shared, 1.0F);
                from += shape.channels;
                into += channels;
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

namespace {

tl::unexpected<Error> sizes_differ(std::size_t expected, std::size_t got, std::size_t index) {
    return node_error(
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size " +
            std::to_string(expected) + " but got size " + std::to_string(got) +
            " for tensor number " + std::to_string(index) + " in the list."
    );
}

}  // namespace

Result<Image> join(const Call& call, std::span<const Image> images) {
    COMFYD_ASSERT(!images.empty());
    if (images.size() == 1) {
        return images[0];
    }
    ImageShape shape = images[0].shape();
    for (std::size_t i = 1; i < images.size(); ++i) {
        const ImageShape& other = images[i].shape();
        const std::array<std::pair<std::size_t, std::size_t>, 3> sides = {
            {{shape.height, other.height},
             {shape.width, other.width},
             {shape.channels, other.channels}}
        };
        for (const auto& [expected, got] : sides) {
            if (expected != got) {
                return sizes_differ(expected, got, i);
            }
        }
        shape.batch += other.batch;
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    std::size_t first = 0;
    for (const Image& image : images) {
        auto done = lay(call, image, *out, 0, 0, first);
        if (!done) {
            return fail(std::move(done.error()));
        }
        first += image.shape().batch;
    }
    return std::move(*out).finish();
}

Result<> lay(
    const Call& call,
    const Image& source,
    NewImage& into,
    std::size_t x,
    std::size_t y,
    std::size_t first
) {
    const ImageShape& from = source.shape();
    const ImageShape& shape = into.shape();
    COMFYD_ASSERT(
        from.channels == shape.channels && x + from.width <= shape.width &&
        y + from.height <= shape.height && first + from.batch <= shape.batch
    );
    return call.for_rows(from.rows(), from.row_floats(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = begin; row < end; ++row) {
            const std::size_t picture = first + row / from.height;
            float* target = into.row(picture * shape.height + y + row % from.height);
            std::copy_n(source.row(row), from.row_floats(), target + x * shape.channels);
        }
    });
}

Result<> fill(const Call& call, NewImage& image, std::span<const float> pixel) {
    const ImageShape shape = image.shape();
    COMFYD_ASSERT(pixel.size() == shape.channels);
    const bool plain =
        std::ranges::all_of(pixel, [&](float value) { return value == pixel.front(); });
    return call
        .for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            float* out = image.row(first);
            float* const end = image.row(last);
            if (plain) {
                std::fill(out, end, pixel.front());
                return;
            }
            while (out != end) {
                out = std::ranges::copy(pixel, out).out;
            }
        });
}

Result<Image> map_values(const Call& call, const Image& image, const RowFunction& function) {
    const ImageShape shape = image.shape();
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const std::size_t floats = shape.row_floats();
    auto done = call.for_rows(shape.rows(), floats, [&](std::size_t first, std::size_t last) {
        function(image.row(first), (last - first) * floats, out->row(first));
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Image as_image(const Mask& mask) {
    return {mask.shape(), mask.buffer()};
}

Mask as_mask(const Image& image) {
    COMFYD_ASSERT(image.shape().channels == 1);
    return {image.shape(), image.buffer()};
}

Result<Image> scale(
    const Call& call,
    const Image& image,
    std::int64_t width,
    std::int64_t height,
    ResizeMethod method,
    Crop crop
) {
    if (width >= 1 && height >= 1) {
        return resize(
            call,
            image,
            static_cast<std::size_t>(width),
            static_cast<std::size_t>(height),
            method,
            crop
        );
    }
    if (method == ResizeMethod::lanczos) {
        return node_error("ValueError", "height and width must be > 0");
    }
    const ImageShape& shape = image.shape();
    return node_error(
        "RuntimeError",
        "Input and output sizes should be greater than 0, but got input (H: " +
            std::to_string(shape.height) + ", W: " + std::to_string(shape.width) +
            ") output (H: " + std::to_string(height) + ", W: " + std::to_string(width) + ")"
    );
}

std::int64_t python_round(double value) {
    return static_cast<std::int64_t>(std::nearbyint(value));
}

std::int64_t python_int(double value) {
    return static_cast<std::int64_t>(value);
}

}  // namespace comfyd::engine
