#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/pictures.hpp"
#include "engine/pixels/torch_math.hpp"

namespace comfyd::engine::nodes {
namespace {

// A list of more tiles than this is a mistake in the overlap.
constexpr std::size_t kTilesMax = 1'000'000;

// Where the tiles of one axis begin and end; the last one is moved back to end with the picture.
std::vector<std::pair<std::size_t, std::size_t>> spans(
    std::size_t side, std::size_t tile, std::size_t overlap
) {
    const double step = std::max(
        static_cast<double>(tile) * 0.25, static_cast<double>(tile) - static_cast<double>(overlap)
    );
    // A step that rounds to 0 would never end; a tile of one or two pixels has it.
    const auto stride = std::max<std::size_t>(1, static_cast<std::size_t>(python_round(step)));
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (std::size_t at = 0; at < side && out.size() < kTilesMax; at += stride) {
        const std::size_t end = std::min(at + tile, side);
        out.emplace_back(end - std::min(end, tile), end);
        if (end == side) {
            break;
        }
    }
    return out;
}

std::vector<Box> tiles(const ImageShape& whole, std::size_t w, std::size_t h, std::size_t overlap) {
    std::vector<Box> out;
    const auto columns = spans(whole.width, w, overlap);
    for (const auto& [top, bottom] : spans(whole.height, h, overlap)) {
        for (const auto& [left, right] : columns) {
            if (out.size() == kTilesMax) {
                return out;
            }
            out.push_back({left, top, right - left, bottom - top});
        }
    }
    return out;
}

Result<NodeResult> split(Call& call) {
    const Image& image = call.image("image");
    const std::size_t width = call.size("tile_width");
    const std::size_t height = call.size("tile_height");
    if (width == 0 || height == 0) {
        return node_error("ValueError", "A tile has at least one pixel");
    }
    auto out = std::make_shared<List>();
    for (const Box& box : tiles(image.shape(), width, height, call.size("overlap"))) {
        auto tile = cut(call, image, box);
        if (!tile) {
            return fail(std::move(tile.error()));
        }
        out->items.emplace_back(std::move(*tile));
    }
    return NodeResult{.outputs = {std::shared_ptr<const List>(std::move(out))}};
}

// Weights along one side of a tile: half a sine wave where tiles overlap.
std::vector<float> window(std::size_t side, bool overlapping) {
    COMFYD_NO_CONTRACTION
    std::vector<float> out(side, 1.0F);
    if (!overlapping) {
        return out;
    }
    const float step = side > 1 ? 1.0F / static_cast<float>(side - 1) : 0.0F;
    for (std::size_t i = 0; i < side; ++i) {
        const float at = i < side / 2 ? step * static_cast<float>(i)
                                      : std::fma(-step, static_cast<float>(side - i - 1), 1.0F);
        const float angle = std::numbers::pi_v<float> * (side > 1 ? at : 0.0F);
        out[i] = std::max(torch_sin(angle), 1e-5F);
    }
    return out;
}

struct Placed {
    const Image& tile;
    Box box;
};

// out += tile * weight, and the weights beside it.
COMFYD_KERNEL void add_row(
    const float* tile,
    const float* columns,
    float row_weight,
    std::size_t width,
    std::size_t channels,
    float* out,
    float* weights
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t x = 0; x < width; ++x) {
        const float weight = row_weight * columns[x];
        for (std::size_t c = 0; c < channels; ++c) {
            out[x * channels + c] += tile[x * channels + c] * weight;
        }
        weights[x] += weight;
    }
}

COMFYD_KERNEL void divide_row(
    const float* weights, std::size_t width, std::size_t channels, float* out
) {
    COMFYD_NO_CONTRACTION
    for (std::size_t x = 0; x < width; ++x) {
        const float weight = weights[x] == 0.0F ? 1.0F : weights[x];
        for (std::size_t c = 0; c < channels; ++c) {
            out[x * channels + c] /= weight;
        }
    }
}

Result<std::vector<Placed>> placed(
    const std::vector<Value>& images, const std::vector<Box>& boxes, const ImageShape& first
) {
    std::vector<Placed> out;
    for (std::size_t i = 0; i < std::min(images.size(), boxes.size()); ++i) {
        const Image& tile = std::get<Image>(images[i]);
        const ImageShape& shape = tile.shape();
        if (shape.channels != first.channels || (shape.batch != first.batch && shape.batch != 1)) {
            const bool by_batch = shape.channels == first.channels;
            return node_error(
                "RuntimeError",
                "The size of tensor a (" + std::to_string(by_batch ? first.batch : first.channels) +
                    ") must match the size of tensor b (" +
                    std::to_string(by_batch ? shape.batch : shape.channels) +
                    ") at non-singleton dimension " + (by_batch ? "0" : "3")
            );
        }
        Box box = boxes[i];
        box.width = std::min(box.width, shape.width);
        box.height = std::min(box.height, shape.height);
        out.push_back({tile, box});
    }
    return out;
}

Result<NodeResult> merge(Call& call) {
    const std::vector<Value>& images = call.list("image_list");
    if (images.empty()) {
        return node_error("IndexError", "list index out of range");
    }
    const ImageShape first = std::get<Image>(images[0]).shape();
    const ImageShape shape{
        first.batch, call.size("final_height"), call.size("final_width"), first.channels
    };
    const std::size_t overlap = call.size("overlap");
    const auto boxes = tiles(shape, first.width, first.height, overlap);
    const auto parts = placed(images, boxes, first);
    if (!parts) {
        return fail(parts.error());
    }
    auto out = call.new_image(shape);
    if (!out) {
        return fail(std::move(out.error()));
    }
    const auto columns = window(first.width, overlap > 0);
    const auto rows = window(first.height, overlap > 0);
    auto done = call.for_rows(
        shape.rows(),
        shape.row_floats() * 2 + parts->size(),
        [&](std::size_t begin, std::size_t end) {
            std::vector<float> weights(shape.width);
            for (std::size_t row = begin; row < end; ++row) {
                const std::size_t y = row % shape.height;
                const std::size_t picture = row / shape.height;
                float* into = out->row(row);
                std::fill_n(into, shape.row_floats(), 0.0F);
                std::ranges::fill(weights, 0.0F);
                for (const Placed& part : *parts) {
                    const Box& box = part.box;
                    if (y < box.y || y >= box.y + box.height) {
                        continue;
                    }
                    const ImageShape& tile = part.tile.shape();
                    const std::size_t from = tile.batch == 1 ? 0 : picture;
                    add_row(
                        part.tile.row(from * tile.height + y - box.y),
                        columns.data(),
                        rows[y - box.y],
                        box.width,
                        shape.channels,
                        into + box.x * shape.channels,
                        weights.data() + box.x
                    );
                }
                divide_row(weights.data(), shape.width, shape.channels, into);
            }
        }
    );
    if (!done) {
        return fail(std::move(done.error()));
    }
    return NodeResult{.outputs = {std::move(*out).finish()}};
}

}  // namespace

NodeClass split_image_to_tile_list() {
    return {
        .name = "SplitImageToTileList",
        .description = "Cuts a picture into tiles that may overlap.",
        .execute = &split,
    };
}

NodeClass image_merge_tile_list() {
    return {
        .name = "ImageMergeTileList",
        .description = "Puts tiles together again and blends where they overlap.",
        .execute = &merge,
    };
}

}  // namespace comfyd::engine::nodes
