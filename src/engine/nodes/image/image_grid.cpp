#include <algorithm>
#include <array>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/bytes.hpp"

namespace comfyd::engine::nodes {
namespace {

// Limits are not checked where a number is linked: cells may overlap, or lie outside of the grid.
struct Layout {
    std::int64_t columns;
    std::int64_t cell_width;
    std::int64_t cell_height;
    std::int64_t padding;

    std::int64_t x(std::int64_t column) const { return column * (cell_width + padding); }
    std::int64_t y(std::int64_t row) const { return row * (cell_height + padding); }
};

// What a side of the grid may have at most, and any of the numbers that it is computed from.
constexpr std::int64_t kNumberMax = std::int64_t{1} << 24;

Result<Layout> layout_of(const Call& call) {
    const auto number = [&](const char* name) {
        return std::clamp(call.place(name), -kNumberMax, kNumberMax);
    };
    const Layout layout{
        number("columns"), number("cell_width"), number("cell_height"), number("padding")
    };
    if (layout.columns == 0) {
        return node_error("ZeroDivisionError", "integer division or modulo by zero");
    }
    return layout;
}

// The part of the cell that lies in the grid.
void paste(const Image& cell, std::int64_t x, std::int64_t y, NewImage& grid) {
    const auto sides = [](std::size_t size) { return static_cast<std::int64_t>(size); };
    const ImageShape& from = cell.shape();
    const ImageShape& into = grid.shape();
    const std::int64_t first = std::max<std::int64_t>(0, -x);
    const std::int64_t last = std::min(sides(from.width), sides(into.width) - x);
    if (first >= last) {
        return;
    }
    for (std::int64_t row = 0; row < sides(from.height); ++row) {
        if (y + row >= 0 && y + row < sides(into.height)) {
            std::copy_n(
                cell.row(static_cast<std::size_t>(row)) + first * sides(from.channels),
                (last - first) * sides(from.channels),
                grid.row(static_cast<std::size_t>(y + row)) + (x + first) * sides(into.channels)
            );
        }
    }
}

Result<NodeResult> compute(Call& call) {
    const std::vector<Image> images = single_pictures(call.list("images"));
    if (images.empty()) {
        return node_error("ValueError", "Cannot create grid from empty image list");
    }
    const auto layout = layout_of(call);
    if (!layout) {
        return fail(layout.error());
    }
    const auto count = static_cast<std::int64_t>(images.size());
    const std::int64_t columns = layout->columns;
    const std::int64_t rows = columns > 0 ? (count + columns - 1) / columns : 0;
    const std::int64_t width = layout->x(columns) - layout->padding;
    const std::int64_t height = layout->y(rows) - layout->padding;
    if (columns < 0 || width < 0 || height < 0) {
        return node_error("ValueError", "Width and height must be >= 0");
    }
    auto grid =
        call.new_image({1, static_cast<std::size_t>(height), static_cast<std::size_t>(width), 3});
    if (!grid) {
        return fail(std::move(grid.error()));
    }
    if (auto done = fill(call, *grid, std::array<float, 3>{}); !done) {
        return fail(std::move(done.error()));
    }
    for (std::int64_t i = 0; i < count; ++i) {
        const Image& image = images[static_cast<std::size_t>(i)];
        if (auto fit = expect_pillow(image); !fit) {
            return fail(std::move(fit.error()));
        }
        auto cell =
            scale(call, image, layout->cell_width, layout->cell_height, ResizeMethod::lanczos);
        if (cell) {
            cell = with_channels(call, *cell, 3);
        }
        if (!cell) {
            return fail(std::move(cell.error()));
        }
        paste(*cell, layout->x(i % columns), layout->y(i / columns), *grid);
    }
    return NodeResult{.outputs = {std::move(*grid).finish()}};
}

}  // namespace

NodeClass image_grid() {
    return {
        .name = "ImageGrid",
        .description = "Arranges pictures in rows and columns, each scaled to a cell.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
