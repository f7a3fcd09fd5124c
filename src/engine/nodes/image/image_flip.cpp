#include <algorithm>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/pictures.hpp"

namespace comfyd::engine::nodes {
namespace {

// A quarter turn: output row y is column y, or the one as far from the right. Columns are read in
// groups, so that each cache line of the source serves several output rows.
Result<Image> turned(const Call& call, const ImageView& view, bool clockwise) {
    const auto whole = call.whole(view);
    if (!whole) {
        return fail(whole.error());
    }
    const Image& image = *whole;
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
    return NodeResult{.outputs = {ImageView(call.image_view("image").mirrored(rows, !rows))}};
}

Result<NodeResult> rotate(Call& call) {
    const ImageView image = call.image_view("image");
    const std::string& rotation = call.text("rotation");
    const bool clockwise = rotation.starts_with("90");
    if (!clockwise && !rotation.starts_with("270")) {
        const bool turn = rotation.starts_with("180");
        return NodeResult{.outputs = {ImageView(image.mirrored(turn, turn))}};
    }
    auto out = turned(call, image, clockwise);
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
        .reads_views = true,
    };
}

NodeClass image_rotate() {
    return {
        .name = "ImageRotate",
        .description = "Turns a picture clockwise in quarter turns.",
        .execute = &rotate,
        .reads_views = true,
    };
}

}  // namespace comfyd::engine::nodes
