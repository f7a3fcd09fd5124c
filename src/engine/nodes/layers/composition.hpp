// Where the layers of a stack lie on the canvas: as they say themselves, or as the client's editor
// has saved it for exactly these layers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "engine/nodes/layers/document.hpp"
#include "engine/nodes/layers/frames.hpp"

namespace comfyd::engine::nodes {

// How a frame is laid on the canvas.
struct Placement {
    bool visible = true;
    double opacity = 1.0;
    std::string blend = "normal";
    double x = 0.0;
    double y = 0.0;
    double width = 0.0;
    double height = 0.0;
    double rotation = 0.0;
    bool flip_h = false;
    bool flip_v = false;
};

struct Background {
    std::array<float, 3> color{1.0F, 1.0F, 1.0F};
    double opacity = 1.0;
    bool visible = false;
};

struct Composition {
    Canvas canvas{};
    std::vector<Placement> placements{};  // one for each frame
    std::vector<std::size_t> order{};     // from below
    Background background{};
};

Composition as_placed(const std::vector<Frame>& frames, const Layers& document);
// The editor's composition, when it is one and was made for these very layers. Not trusted: every
// number is clamped.
std::optional<Composition> saved_composition(
    const json::value& state, const std::vector<Frame>& frames, const json::array& fingerprints
);

// What a placement covers, turned as it is.
struct Bounds {
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::int64_t width = 1;
    std::int64_t height = 1;
};

Bounds bounds_of(const Placement& place);

}  // namespace comfyd::engine::nodes
