// The pictures of a stack of layers, one by one, from below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/nodes/layers/bitmap.hpp"
#include "engine/nodes/layers/document.hpp"

namespace comfyd::engine::nodes {

// One picture of the stack.
struct Frame {
    const Layer* layer;
    std::size_t index;            // in the layer's batch
    std::optional<Mask> alpha{};  // of the picture's size; none: opaque

    const float* row(std::size_t y) const {
        return layer->image.row(index * layer->image.shape().height + y);
    }
    std::size_t width() const { return layer->image.shape().width; }
    std::size_t height() const { return layer->image.shape().height; }
    std::size_t channels() const { return layer->image.shape().channels; }
    std::int64_t shown_width() const {
        return layer->width > 0 ? layer->width : static_cast<std::int64_t>(width());
    }
    std::int64_t shown_height() const {
        return layer->height > 0 ? layer->height : static_cast<std::int64_t>(height());
    }
};

// Points into the document. Fails where there are more than kLayersMax.
Result<std::vector<Frame>> frames_of(const Call& call, const Layers& document);

Rgba8 to_bitmap(const Frame& frame);

// By which the editor knows that a saved composition belongs to these layers.
std::string fingerprint_of(const Frame& frame);
// What the editor shows of one layer, as files and as data.
Result<json::array> preview_layer(const Call& call, const Frame& frame);
json::object describe(const Frame& frame);

}  // namespace comfyd::engine::nodes
