// Pictures made smaller: each pixel is the mean of those that it stands for. Pure; any thread.
#pragma once

#include <cstddef>

#include "engine/pictures/reader.hpp"

namespace comfyd::standalone {

// So that neither side has more than `longest_side`; a smaller picture stays as it is. Colours
// count by their alpha. REQUIRES: longest_side > 0.
void shrink(engine::pictures::Bitmap& bitmap, std::size_t longest_side);

}  // namespace comfyd::standalone
