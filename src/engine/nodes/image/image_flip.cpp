#include <algorithm>
#include <array>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

template <std::size_t kChannels>
void mirror(const float* from, std::size_t width, float* into) {
    const float* pixel = from + width * kChannels;
    for (std::size_t x = 0; x < width; ++x) {
        pixel -= kChannels;
        for (std::size_t c = 0; c < kChannels; ++c) {
            *into++ = pixel[c];
        }
    }
}

void mirror_row(const float* from, const ImageShape& shape, float* into) {
    if (shape.channels == 3) {
        return mirror<3>(from, shape.width, into);
    }
    if (shape.channels == 4) {
        return mirror<4>(from, shape.width, into);
    }
    for (std::size_t x = shape.width; x-- > 0;) {
        into = std::copy_n(from + x * shape.channels, shape.channels, into);
    }
}

Result<Image> flipped(const Call& call, const Image& image, bool rows, bool columns) {
    const ImageShape shape = image.shape();
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    auto done =
        call.for_rows(shape.rows(), shape.row_floats(), [&](std::size_t first, std::size_t last) {
            for (std::size_t row = first; row < last; ++row) {
                const std::size_t y = row % shape.height;
                const float* from = image.row(rows ? row - y + shape.height - 1 - y : row);
                if (columns) {
                    mirror_row(from, shape, out->row(row));
                } else {
                    std::copy_n(from, shape.row_floats(), out->row(row));
                }
            }
        });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

// A quarter turn: output row y is column y, or the one as far from the right. Columns are read in
// groups, so that each cache line of the source serves several output rows.
Result<Image> turned(const Call& call, const Image& image, bool clockwise) {
    const ImageShape& from = image.shape();
    auto out = call.new_image({from.batch, from.width, from.height, from.channels});
    if (!out) {
        return fail(std::move(out.error()));
    }
    const ImageShape shape = out->shape();
    const auto row = [&](std::size_t picture, std::size_t first, std::size_t last) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            const std::size_t source_y = clockwise ? from.height - 1 - x : x;
            const float* source = image.row(picture * from.height + source_y);
            for (std::size_t y = first; y < last; ++y) {
                const std::size_t source_x = clockwise ? y : from.width - 1 - y;
                std::copy_n(
                    source + source_x * from.channels,
                    from.channels,
                    out->row(picture * shape.height + y) + x * from.channels
                );
            }
        }
    };
    constexpr std::size_t kGroup = 8;
    auto done = call.for_rows(
        shape.rows(),
        shape.row_floats() * 2,
        [&](std::size_t first, std::size_t last) {
            while (first < last) {
                const std::size_t y = first % shape.height;
                const std::size_t end = std::min({y + kGroup, y + (last - first), shape.height});
                row(first / shape.height, y, end);
                first += end - y;
            }
        }
    );
    if (!done) {
        return fail(std::move(done.error()));
    }
    return std::move(*out).finish();
}

Result<NodeResult> flip(Call& call) {
    const bool rows = call.text("flip_method").starts_with('x');
    auto out = flipped(call, call.image("image"), rows, !rows);
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

Result<Image> rotated(const Call& call, const Image& image, std::string_view rotation) {
    if (rotation.starts_with("90")) {
        return turned(call, image, true);
    }
    if (rotation.starts_with("180")) {
        return flipped(call, image, true, true);
    }
    if (rotation.starts_with("270")) {
        return turned(call, image, false);
    }
    return image;
}

Result<NodeResult> rotate(Call& call) {
    auto out = rotated(call, call.image("image"), call.text("rotation"));
    if (!out) {
        return fail(std::move(out.error()));
    }
    return NodeResult{.outputs = {std::move(*out)}};
}

}  // namespace

NodeClass image_flip() {
    return {
        .name = "ImageFlip",
        .description = "Turns a picture upside down, or left to right.",
        .execute = &flip,
    };
}

NodeClass image_rotate() {
    return {
        .name = "ImageRotate",
        .description = "Turns a picture clockwise in quarter turns.",
        .execute = &rotate,
    };
}

}  // namespace comfyd::engine::nodes
