#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/extremum.hpp"
#include "engine/pixels/values.hpp"

namespace comfyd::engine::nodes {
namespace {

// Red, green, blue and the mask, each within 0..1.
Result<Image> with_mask(const Call& call, const Image& picture, const Image& mask) {
    const ImageShape& shape = picture.shape();
    auto out = call.new_image({1, shape.height, shape.width, 4});
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done =
        call.for_rows(shape.height, shape.width * 4, [&](std::size_t first, std::size_t last) {
            const float* from = picture.row(first);
            const float* alpha = mask.row(first);
            float* into = out->row(first);
            for (std::size_t i = 0; i < (last - first) * shape.width; ++i) {
                for (std::size_t c = 0; c < 3; ++c) {
                    into[c] = clamp_unit(from[c]);
                }
                into[3] = clamp_unit(*alpha++);
                from += shape.channels;
                into += 4;
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> alpha_of(const Call& call, const Image& picture) {
    const ImageShape& shape = picture.shape();
    auto out = call.new_image({1, shape.height, shape.width, 1});
    if (!out) {
        return fail(std::move(out.error()));
    }
    for (std::size_t i = 0; i < shape.height * shape.width; ++i) {
        out->data()[i] = picture.data()[i * 4 + 3];
    }
    return std::move(*out).finish();
}

// A square, one fifth wider than what the alpha shows; it may reach beyond the picture.
struct Square {
    std::int64_t left = 0;
    std::int64_t top = 0;
    std::int64_t right = 0;
    std::int64_t bottom = 0;
};

std::optional<Square> square_around(const Image& alpha) {
    const ImageShape& shape = alpha.shape();
    double x0 = std::numeric_limits<double>::infinity();
    double x1 = -1;
    double y0 = 0;
    double y1 = 0;
    for (std::size_t y = 0; y < shape.height; ++y) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            if (alpha.row(y)[x] > 0) {
                y0 = x1 < 0 ? static_cast<double>(y) : y0;
                y1 = static_cast<double>(y);
                x0 = std::min(x0, static_cast<double>(x));
                x1 = std::max(x1, static_cast<double>(x));
            }
        }
    }
    if (x1 < 0) {
        return std::nullopt;
    }
    const double x = (x0 + x1) / 2;
    const double y = (y0 + y1) / 2;
    const double half = std::max(x1 - x0, y1 - y0) / 2 * 1.2;
    return Square{
        python_int(x - half), python_int(y - half), python_int(x + half), python_int(y + half)
    };
}

// The square of the picture with the new alpha; nothing is beyond the border.
Result<Image> cut_square(
    const Call& call, const Image& picture, const Image& alpha, const Square& square
) {
    const ImageShape& shape = picture.shape();
    auto out = call.new_image(
        {1,
         static_cast<std::size_t>(square.bottom - square.top),
         static_cast<std::size_t>(square.right - square.left),
         4}
    );
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape size = out->shape();
    auto done =
        call.for_rows(size.height, size.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                float* into = out->row(row);
                std::fill_n(into, size.row_floats(), 0.0F);
                const std::int64_t y = square.top + static_cast<std::int64_t>(row);
                if (y < 0 || y >= static_cast<std::int64_t>(shape.height)) {
                    continue;
                }
                const auto source = static_cast<std::size_t>(y);
                const std::int64_t begin = std::max<std::int64_t>(square.left, 0);
                const std::int64_t end =
                    std::min(square.right, static_cast<std::int64_t>(shape.width));
                for (std::int64_t x = begin; x < end; ++x) {
                    const auto at = static_cast<std::size_t>(x);
                    float* pixel = into + static_cast<std::size_t>(x - square.left) * 4;
                    std::copy_n(picture.row(source) + at * 4, 3, pixel);
                    pixel[3] = alpha.row(source)[at];
                }
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> over_black(const Call& call, const Image& picture) {
    const ImageShape& shape = picture.shape();
    auto out = call.new_image({1, shape.height, shape.width, 3});
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done =
        call.for_rows(shape.height, shape.row_floats(), [&](std::size_t first, std::size_t last) {
            const float* from = picture.row(first);
            float* into = out->row(first);
            for (std::size_t i = 0; i < (last - first) * shape.width; ++i, from += 4, into += 3) {
                for (std::size_t c = 0; c < 3; ++c) {
                    into[c] = from[c] * from[3];
                }
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<Image> prepared(
    const Call& call,
    const Image& image,
    const Image& mask,
    std::size_t erode_radius,
    std::int64_t size
) {
    auto picture = with_mask(call, image, mask);
    if (!picture) {
        return picture;
    }
    const auto width = static_cast<double>(image.shape().width);
    const auto height = static_cast<double>(image.shape().height);
    const double factor = static_cast<double>(size) / std::min(width, height);
    picture = scale(
        call,
        *picture,
        std::max<std::int64_t>(1, python_round(width * factor)),
        std::max<std::int64_t>(1, python_round(height * factor)),
        ResizeMethod::lanczos
    );
    Result<Image> alpha = picture ? alpha_of(call, *picture) : picture;
    if (alpha && erode_radius > 0) {
        alpha = extremum(
            call,
            *alpha,
            erode_radius * 2 + 1,
            Extremum::smallest,
            std::numeric_limits<float>::infinity()
        );
    }
    if (!alpha) {
        return alpha;
    }
    const auto square = square_around(*alpha);
    if (!square) {
        return node_error(
            "ValueError", "TripoSplatPreprocessImage: mask is empty (no foreground pixels)."
        );
    }
    if (square->right <= square->left || square->bottom <= square->top) {
        return node_error("ValueError", "height and width must be > 0");
    }
    auto crop = cut_square(call, *picture, *alpha, *square);
    if (crop) {
        crop = scale(call, *crop, size, size, ResizeMethod::lanczos);
    }
    return crop ? over_black(call, *crop) : crop;
}

Result<NodeResult> compute(Call& call) {
    auto images = with_channels(call, call.image("image"), 3);
    if (!images) {
        return fail(std::move(images.error()));
    }
    const ImageShape& shape = images->shape();
    Result<Image> masks = as_image(call.mask("mask"));
    const std::size_t mask_batch = masks->shape().batch;
    if (masks->shape().width != shape.width || masks->shape().height != shape.height) {
        masks =
            resize(call, *masks, shape.width, shape.height, ResizeMethod::bilinear, Crop::disabled);
        if (!masks) {
            return fail(std::move(masks.error()));
        }
    }
    const std::int64_t size = std::max<std::int64_t>(16, call.place("size") / 16 * 16);
    std::vector<Image> out;
    for (std::size_t i = 0; i < shape.batch; ++i) {
        const auto picture = some_pictures(call, *images, i, 1);
        const auto mask = some_pictures(call, *masks, i % mask_batch, 1);
        if (!picture || !mask) {
            return fail((picture ? mask : picture).error());
        }
        auto one = prepared(call, *picture, *mask, call.size("erode_radius"), size);
        if (!one) {
            return fail(std::move(one.error()));
        }
        out.push_back(std::move(*one));
    }
    auto joined = join(call, out);
    if (!joined) {
        return fail(std::move(joined.error()));
    }
    return NodeResult{.outputs = {std::move(*joined)}};
}

}  // namespace

NodeClass triposplat_preprocess_image() {
    return {
        .name = "TripoSplatPreprocessImage",
        .description = "Cuts out what a mask shows, in a black square of one size.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
