// Pillow's ImageDraw on 8-bit pictures: boxes, letters and colours.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/nodes/layers/bitmap.hpp"
#include "engine/nodes/layers/font.hpp"

namespace comfyd::engine::nodes {

using Color = std::array<std::uint8_t, 4>;

// "#rgb", "#rgba", "#rrggbb" and "#rrggbbaa".
std::optional<Color> parse_color(std::string_view text);

struct Corners {
    int left = 0;
    int top = 0;
    int right = 0;  // both belong to the box
    int bottom = 0;
};
void fill_box(Rgba8& picture, const Corners& box, const Color& color);
// A frame of `width` pixels, inside the box.
void outline_box(Rgba8& picture, const Corners& box, const Color& color, int width);

struct Pen {
    Color color{};
    int stroke = 0;
};
void draw_text(
    Rgba8& picture, const Font& font, std::string_view text, double x, double y, const Pen& pen
);

}  // namespace comfyd::engine::nodes
