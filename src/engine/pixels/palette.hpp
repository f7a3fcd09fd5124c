// Pillow's reduction of a picture to a palette: median cut, then the nearest colour for every
// pixel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace comfyd::engine {

using Rgb = std::array<std::uint8_t, 3>;

// At most `colors` (1 to 256) colours that stand for all pixels, in Pillow's order.
std::vector<Rgb> median_cut(std::span<const Rgb> pixels, std::size_t colors);

// Finds colours as Pillow does: the nearest to the corner of a cell of 4 x 4 x 4 colours.
class PaletteMap {
public:
    explicit PaletteMap(std::span<const Rgb> palette);

    const Rgb& nearest(const Rgb& color) {
        std::int16_t& slot = slots_[index(color)];
        if (slot < 0) {
            fill_box(color);
        }
        return palette_[static_cast<std::size_t>(slot)];
    }

private:
    static std::size_t index(const Rgb& color) {
        return std::size_t{color[0]} >> 2 | std::size_t{color[1]} >> 2 << 6 |
               std::size_t{color[2]} >> 2 << 12;
    }
    void fill_box(const Rgb& color);

    std::vector<Rgb> palette_;
    std::vector<std::int16_t> slots_;
};

// Pillow's error diffusion; `pixels` become colours of the palette.
void diffuse(std::span<Rgb> pixels, std::size_t width, PaletteMap& map);

}  // namespace comfyd::engine
