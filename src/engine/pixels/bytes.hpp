// Pictures as ComfyUI's nodes hand them to Pillow: one at a time, in bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/pixels/pictures.hpp"

namespace comfyd::engine {

// Fails as Pillow does with pictures that it has no mode for, and as ComfyUI's classes that take
// their batches apart do with an empty one.
Result<> expect_pillow(const Image& image);

// Every value cut down to a byte and back, as a walk through Pillow leaves it.
Result<Image> rounded_to_bytes(const Call& call, const Image& image);

inline float from_byte(std::uint8_t byte) {
    return static_cast<float>(byte) / 255.0F;
}

}  // namespace comfyd::engine
