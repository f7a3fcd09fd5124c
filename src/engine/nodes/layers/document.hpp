// ComfyUI's LAYERS: pictures with their places, from which ImageCompositor makes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

struct Canvas {
    std::int64_t width = 0;
    std::int64_t height = 0;
};

struct Layer {
    Image image;  // each picture of the batch is a layer of its own
    std::optional<Mask> mask{};
    std::string name{};  // empty: none
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::int64_t width = 0;  // 0: that of the picture
    std::int64_t height = 0;
    std::int64_t z_index = 0;
    double opacity = 1.0;
    double rotation = 0.0;  // clockwise, in radians
    std::string blend = "normal";
    bool flip_h = false;
    bool flip_v = false;
};

class Layers : public Object {
public:
    Layers(std::vector<Layer> items, std::optional<Canvas> size)
        : layers(std::move(items)), canvas(size) {}
    std::string_view type() const override { return "LAYERS"; }
    std::uint64_t bytes() const override {
        std::uint64_t sum = 0;
        for (const Layer& layer : layers) {
            sum += sizeof layer + layer.name.size() + layer.blend.size();
        }
        return sum;
    }

    const std::vector<Layer> layers;
    const std::optional<Canvas> canvas;
};

inline constexpr std::size_t kLayersMax = 50;

}  // namespace comfyd::engine::nodes
