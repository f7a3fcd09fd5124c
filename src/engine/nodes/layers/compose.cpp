#include "engine/nodes/layers/compose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/layers/bitmap.hpp"
#include "engine/nodes/layers/blend.hpp"
#include "engine/nodes/node.hpp"

namespace comfyd::engine::nodes {
namespace {

// That a layer takes on its way to the canvas: as it is, scaled, and turned, which at most makes it
// as wide and high as both its sides together.
std::uint64_t bitmap_bytes(const Frame& frame, const Placement& place) {
    const double sides = place.width + place.height + 2;
    const double turned = place.rotation != 0.0 ? sides * sides : 0.0;
    return frame.width() * frame.height() * 4 +
           static_cast<std::uint64_t>(8.0 * place.width * place.height + 4.0 * turned);
}

Result<Rgba8> prepare(const Call& call, const Frame& frame, const Placement& place) {
    Rgba8 bitmap = to_bitmap(frame);
    flip(bitmap, place.flip_h, place.flip_v);
    const auto width = static_cast<std::size_t>(std::max(1.0, std::nearbyint(place.width)));
    const auto height = static_cast<std::size_t>(std::max(1.0, std::nearbyint(place.height)));
    if (bitmap.width != width || bitmap.height != height) {
        auto scaled = resized(call, bitmap, width, height);
        if (!scaled) {
            return scaled;
        }
        bitmap = std::move(*scaled);
    }
    if (place.rotation != 0.0) {
        return rotated(call, bitmap, -(place.rotation * (180.0 / std::numbers::pi)));
    }
    return bitmap;
}

const std::array<float, 256>& linear_of_bytes() {
    static const std::array<float, 256> table = [] {
        std::array<float, 256> values{};
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = srgb_to_linear(static_cast<float>(i) / 255.0F);
        }
        return values;
    }();
    return table;
}

// Python's //, which rounds down.
std::int64_t half_down(std::int64_t value) {
    return value >= 0 ? value / 2 : -((-value + 1) / 2);
}

Result<> lay(const Call& call, NewImage& canvas, const Rgba8& bitmap, const Placement& place) {
    const Bounds bounds = bounds_of(place);
    const auto canvas_width = static_cast<std::int64_t>(canvas.shape().width);
    const auto canvas_height = static_cast<std::int64_t>(canvas.shape().height);
    const std::int64_t x0 = std::max<std::int64_t>(bounds.x, 0);
    const std::int64_t y0 = std::max<std::int64_t>(bounds.y, 0);
    const std::int64_t x1 = std::min(bounds.x + bounds.width, canvas_width);
    const std::int64_t y1 = std::min(bounds.y + bounds.height, canvas_height);
    if (x0 >= x1 || y0 >= y1) {
        return {};
    }
    // The bitmap sits in the middle of the bounds; around it nothing is laid.
    const std::int64_t left =
        bounds.x + half_down(bounds.width - static_cast<std::int64_t>(bitmap.width));
    const std::int64_t top =
        bounds.y + half_down(bounds.height - static_cast<std::int64_t>(bitmap.height));
    const BlendMode mode(place.blend);
    const auto count = static_cast<std::size_t>(x1 - x0);
    return call.for_rows(
        static_cast<std::size_t>(y1 - y0),
        count * 64,
        [&](std::size_t first, std::size_t last) {
            std::vector<float> row(count * 4);
            for (std::size_t i = first; i < last; ++i) {
                const std::int64_t y = y0 + static_cast<std::int64_t>(i);
                std::ranges::fill(row, 0.0F);
                for (std::int64_t x = std::max(x0, left);
                     y >= top && y < top + static_cast<std::int64_t>(bitmap.height) &&
                     x < std::min(x1, left + static_cast<std::int64_t>(bitmap.width));
                     ++x) {
                    const std::uint8_t* from = bitmap.at(
                        static_cast<std::size_t>(x - left), static_cast<std::size_t>(y - top)
                    );
                    float* into = row.data() + (x - x0) * 4;
                    for (std::size_t c = 0; c < 3; ++c) {
                        into[c] = linear_of_bytes()[from[c]];
                    }
                    into[3] = static_cast<float>(from[3]) / 255.0F;
                }
                float* under = canvas.row(static_cast<std::size_t>(y)) + x0 * 4;
                mode.apply(under, row.data(), count, static_cast<float>(place.opacity));
            }
        }
    );
}

void fill_background(NewImage& canvas, const Background& background) {
    const ImageShape& shape = canvas.shape();
    std::fill_n(canvas.data(), shape.rows() * shape.row_floats(), 0.0F);
    if (!background.visible || background.opacity <= 0.0) {
        return;
    }
    std::array<float, 4> layer{0.0F, 0.0F, 0.0F, 1.0F};
    std::ranges::transform(background.color, layer.begin(), &srgb_to_linear);
    const BlendMode normal("normal");
    for (std::size_t i = 0; i < shape.rows() * shape.width; ++i) {
        normal.apply(
            canvas.data() + i * 4, layer.data(), 1, static_cast<float>(background.opacity)
        );
    }
}

}  // namespace

Result<NewImage> compose(
    const Call& call, const std::vector<Frame>& frames, const Composition& composition
) {
    const auto [width, height] = composition.canvas;
    if (width > std::int64_t{kSideMax} || height > std::int64_t{kSideMax}) {
        return node_error(
            "ValueError",
            "The canvas of " + std::to_string(width) + " x " + std::to_string(height) +
                " is larger than 16384 x 16384"
        );
    }
    auto canvas =
        call.new_image({1, static_cast<std::size_t>(height), static_cast<std::size_t>(width), 4});
    if (!canvas) {
        return canvas;
    }
    fill_background(*canvas, composition.background);
    for (const std::size_t index : composition.order) {
        const Placement& place = composition.placements[index];
        if (!place.visible) {
            continue;
        }
        const auto space = call.charge(bitmap_bytes(frames[index], place));
        if (!space) {
            return fail(space.error());
        }
        const auto bitmap = prepare(call, frames[index], place);
        if (!bitmap) {
            return fail(bitmap.error());
        }
        if (auto laid = lay(call, *canvas, *bitmap, place); !laid) {
            return fail(std::move(laid.error()));
        }
    }
    return canvas;
}

}  // namespace comfyd::engine::nodes
