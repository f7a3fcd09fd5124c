// Pictures turned and mirrored as files ask for. Pure; any thread.
#pragma once

#include "engine/pictures/reader.hpp"

namespace comfyd::media {

// As in EXIF, from 1: as it is, mirrored, turned by half, mirrored upside down, and the same four
// with rows and columns exchanged.
using Orientation = int;
inline constexpr Orientation kAsItIs = 1;
inline constexpr bool exchanges_sides(Orientation orientation) {
    return orientation >= 5;
}
// Of 0 to 3 quarters, clockwise.
Orientation orientation_of_quarters(int quarters);

// What is to be seen. REQUIRES: 1 to 8.
engine::pictures::Bitmap turn(engine::pictures::Bitmap from, Orientation orientation);

}  // namespace comfyd::media
