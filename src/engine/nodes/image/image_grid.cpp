#include <array>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/pixels/bytes.hpp"

namespace comfyd::engine::nodes {
namespace {

Result<NodeResult> execute(Call& call) {
    const std::vector<Value>& images = call.list("images");
    if (images.empty()) {
        return node_error("ValueError", "Cannot create grid from empty image list");
    }
    const std::size_t columns = call.size("columns");
    const std::size_t width = call.size("cell_width");
    const std::size_t height = call.size("cell_height");
    const std::size_t gap = call.size("padding");
    if (columns == 0) {
        return node_error("ZeroDivisionError", "integer division or modulo by zero");
    }
    const std::size_t rows = (images.size() + columns - 1) / columns;
    auto grid = call.new_image(
        {1, rows * height + (rows - 1) * gap, columns * width + (columns - 1) * gap, 3}
    );
    if (!grid) {
        return fail(std::move(grid.error()));
    }
    auto done = fill(call, *grid, std::array<float, 3>{});
    for (std::size_t i = 0; i < images.size() && done; ++i) {
        const Image& image = std::get<Image>(images[i]);
        if (done = expect_single(image); !done) {
            break;
        }
        auto cell = resize(call, image, width, height, ResizeMethod::lanczos, Crop::disabled);
        if (cell) {
            cell = with_channels(call, *cell, 3);
        }
        if (!cell) {
            return fail(std::move(cell.error()));
        }
        done = lay(call, *cell, *grid, i % columns * (width + gap), i / columns * (height + gap));
    }
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*grid).finish()}};
}

}  // namespace

NodeClass image_grid() {
    return {
        .name = "ImageGrid",
        .description = "Arranges pictures in rows and columns, each scaled to a cell.",
        .execute = &execute,
    };
}

}  // namespace comfyd::engine::nodes
