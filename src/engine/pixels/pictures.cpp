#include "engine/pixels/pictures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace comfyd::engine {

Result<Image> cut(const Call& call, const Image& image, const Box& box) {
    return call.whole(ImageView(View(image).cut(box)));
}

Result<Image> some_pictures(
    const Call& call, const Image& image, std::size_t first, std::size_t count
) {
    return call.whole(ImageView(View(image).pictures(first, count)));
}

std::vector<Image> single_pictures(const std::vector<Value>& batches) {
    constexpr std::size_t kSinglesMax = 1'000'000;
    std::vector<Image> singles;
    for (const Value& value : batches) {
        const Image& batch = std::get<Image>(value);
        ImageShape shape = batch.shape();
        const std::size_t count = std::exchange(shape.batch, 1);
        if (count > kSinglesMax - singles.size()) {
            throw NodeFailure("MemoryError", "A list has at most a million pictures");
        }
        for (std::size_t i = 0; i < count; ++i) {
            singles.emplace_back(shape, batch.buffer(), batch.picture(i));
        }
    }
    return singles;
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

constexpr std::size_t kPieceFloatsMin = 1024;
constexpr std::size_t kPiecesMax = 16 * 1024;

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
    const std::vector<View> views(images.begin(), images.end());
    auto joined = join_views(call, views);
    if (!joined) {
        return fail(std::move(joined.error()));
    }
    return call.whole(ImageView(std::move(*joined)));
}

Result<View> join_views(const Call& call, std::span<const View> views) {
    if (views.empty()) {
        return node_error("RuntimeError", "torch.cat(): expected a non-empty list of Tensors");
    }
    ImageShape shape = views[0].shape();
    std::size_t pieces = views[0].pieces();
    for (std::size_t i = 1; i < views.size(); ++i) {
        const ImageShape& other = views[i].shape();
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
        pieces += views[i].pieces();
    }
    if (pieces <= kPiecesMax && shape.floats() >= pieces * kPieceFloatsMin) {
        return View::joined(views);
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    float* into = out->data();
    for (const View& view : views) {
        if (auto go_on = call.check_stopped(); !go_on) {
            return fail(std::move(go_on.error()));
        }
        for (std::size_t row = 0; row < view.shape().rows(); ++row) {
            view.copy_row(row, into);
            into += shape.row_floats();
        }
    }
    return View(std::move(*out).finish());
}

Result<View> repeated(const Call& call, const View& view, std::size_t times) {
    const ImageShape& shape = view.shape();
    if (times == 0) {
        return view.pictures(0, 0);
    }
    if (times <= kPiecesMax / std::max<std::size_t>(1, view.pieces()) &&
        shape.floats() >= view.pieces() * kPieceFloatsMin) {
        return View::joined(std::vector<View>(times, view));
    }
    std::size_t batch = 0;
    if (__builtin_mul_overflow(shape.batch, times, &batch)) {
        batch = std::numeric_limits<std::size_t>::max();
    }
    auto out = call.new_image({batch, shape.height, shape.width, shape.channels});
    if (!out) {
        return fail(std::move(out.error()));
    }
    const std::size_t rows = out->shape().rows();
    auto done = call.for_rows(rows, shape.row_floats(), [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            view.copy_row(row % shape.rows(), out->row(row));
        }
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return View(std::move(*out).finish());
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
    return Image(Pixels(mask));
}

Mask as_mask(const Image& image) {
    COMFYD_ASSERT(image.shape().channels == 1);
    return Mask(Pixels(image));
}

Result<Image> scale(
    const Call& call,
    const Image& image,
    std::int64_t width,
    std::int64_t height,
    ResizeMethod method,
    Crop crop
) {
    if (width < 0 || height < 0) {
        return sizes_refused(method, image.shape(), width, height);
    }
    return resize(
        call, image, static_cast<std::size_t>(width), static_cast<std::size_t>(height), method, crop
    );
}

namespace {

// So large that nothing fits it, so small that sums of it stay whole.
constexpr double kWholeMax = 0x1p53;

std::int64_t to_whole(double value) {
    if (std::isnan(value)) {
        throw NodeFailure("ValueError", "cannot convert float NaN to integer");
    }
    if (std::isinf(value)) {
        throw NodeFailure("OverflowError", "cannot convert float infinity to integer");
    }
    if (std::abs(value) > kWholeMax) {
        throw NodeFailure("OverflowError", "Python int too large to convert to C long");
    }
    return static_cast<std::int64_t>(value);
}

}  // namespace

std::int64_t python_round(double value) {
    return to_whole(std::nearbyint(value));
}

std::int64_t python_int(double value) {
    return to_whole(value);
}

}  // namespace comfyd::engine
