#include "engine/nodes/layers/drawing.hpp"

#include <algorithm>

namespace comfyd::engine::nodes {
namespace {

int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// From either end; parts outside of the picture are left out.
void fill_area(Rgba8& picture, Corners box, const Color& color) {
    const auto right = static_cast<int>(picture.width) - 1;
    const auto bottom = static_cast<int>(picture.height) - 1;
    if (box.left > box.right) {
        std::swap(box.left, box.right);
    }
    if (box.top > box.bottom) {
        std::swap(box.top, box.bottom);
    }
    for (int y = std::max(box.top, 0); y <= std::min(box.bottom, bottom); ++y) {
        for (int x = std::max(box.left, 0); x <= std::min(box.right, right); ++x) {
            std::ranges::copy(
                color, picture.at(static_cast<std::size_t>(x), static_cast<std::size_t>(y))
            );
        }
    }
}

std::uint8_t mixed(std::uint8_t under, std::uint8_t over, std::uint8_t coverage) {
    const unsigned sum = under * (255U - coverage) + over * coverage + 128U;
    return static_cast<std::uint8_t>(((sum >> 8) + sum) >> 8);
}

}  // namespace

std::optional<Color> parse_color(std::string_view text) {
    if (!text.starts_with('#')) {
        return std::nullopt;
    }
    text.remove_prefix(1);
    const bool brief = text.size() == 3 || text.size() == 4;
    if (!brief && text.size() != 6 && text.size() != 8) {
        return std::nullopt;
    }
    Color color{0, 0, 0, 255};
    const std::size_t digits = brief ? 1 : 2;
    for (std::size_t i = 0; i < text.size() / digits; ++i) {
        const int high = hex_digit(text[i * digits]);
        const int low = hex_digit(text[i * digits + digits - 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        color[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return color;
}

void fill_box(Rgba8& picture, const Corners& box, const Color& color) {
    fill_area(picture, box, color);
}

void outline_box(Rgba8& picture, const Corners& box, const Color& color, int width) {
    const int top = std::min(box.top, box.bottom);
    const int bottom = std::max(box.top, box.bottom);
    for (int i = 0; i < width; ++i) {
        fill_area(picture, {box.left, top + i, box.right, top + i}, color);
        fill_area(picture, {box.left, bottom - i, box.right, bottom - i}, color);
        fill_area(picture, {box.right - i, top + width, box.right - i, bottom - width + 1}, color);
        fill_area(picture, {box.left + i, top + width, box.left + i, bottom - width + 1}, color);
    }
}

void draw_text(
    Rgba8& picture, const Font& font, std::string_view text, double x, double y, const Pen& pen
) {
    font.draw(text, x, y, pen.stroke, [&](int column, int row, std::uint8_t coverage) {
        if (column < 0 || row < 0 || column >= static_cast<int>(picture.width) ||
            row >= static_cast<int>(picture.height)) {
            return;
        }
        std::uint8_t* pixel =
            picture.at(static_cast<std::size_t>(column), static_cast<std::size_t>(row));
        for (std::size_t c = 0; c < 4; ++c) {
            pixel[c] = mixed(pixel[c], pen.color[c], coverage);
        }
    });
}

}  // namespace comfyd::engine::nodes
