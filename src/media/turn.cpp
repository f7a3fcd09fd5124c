#include "media/turn.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace comfyd::media {

using engine::pictures::Bitmap;

Orientation orientation_of_quarters(int quarters) {
    static constexpr std::array<Orientation, 4> kOrientations{1, 6, 3, 8};
    return kOrientations.at(static_cast<std::size_t>(quarters));
}

Bitmap turn(Bitmap from, Orientation orientation) {
    if (orientation == kAsItIs) {
        return from;
    }
    const bool is_across = exchanges_sides(orientation);
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 ||
                            orientation == 8;  // columns are counted from the other side
    const bool from_below =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    Bitmap made{
        .width = is_across ? from.height : from.width,
        .height = is_across ? from.width : from.height,
        .rgba = std::vector<std::uint8_t>(from.rgba.size()),
        .has_alpha = from.has_alpha
    };
    for (std::size_t y = 0; y < from.height; ++y) {
        const std::size_t row = from_below ? from.height - 1 - y : y;
        for (std::size_t x = 0; x < from.width; ++x) {
            const std::size_t column = from_right ? from.width - 1 - x : x;
            const std::size_t at =
                is_across ? column * made.width + row : row * made.width + column;
            std::memcpy(made.rgba.data() + 4 * at, from.rgba.data() + 4 * (y * from.width + x), 4);
        }
    }
    return made;
}

}  // namespace comfyd::media
