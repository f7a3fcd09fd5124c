// The largest or smallest value in a square around every pixel, channel by channel.
#pragma once

#include <cstddef>

#include "engine/pixels/pictures.hpp"

namespace comfyd::engine {

enum class Extremum { largest, smallest };

// The square of `side` pixels begins side / 2 before the pixel. What lies outside of the picture
// counts as `outside`; NaN wins over everything.
Result<Image> extremum(
    const Call& call, const Image& image, std::size_t side, Extremum which, float outside
);

}  // namespace comfyd::engine
