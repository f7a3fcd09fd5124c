// Pixels between ComfyUI's floats and the bytes of picture files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace comfyd::engine {

// trunc(clip(255 * x, 0, 255)), as ComfyUI: nothing is rounded up. NaN becomes 0.
void to_bytes(const float* from, std::size_t count, std::uint8_t* into);

}  // namespace comfyd::engine
