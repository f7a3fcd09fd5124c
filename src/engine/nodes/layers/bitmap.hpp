// 8-bit pictures with alpha and what Pillow does with them. Plain values, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

class Call;

namespace nodes {

struct Rgba8 {
    std::size_t width = 0;
    std::size_t height = 0;
    std::vector<std::uint8_t> bytes{};  // R, G, B, A

    std::uint8_t* at(std::size_t x, std::size_t y) { return bytes.data() + (y * width + x) * 4; }
    const std::uint8_t* at(std::size_t x, std::size_t y) const {
        return bytes.data() + (y * width + x) * 4;
    }
};

void flip(Rgba8& picture, bool horizontally, bool vertically);
// Pillow's LANCZOS.
Result<Rgba8> resized(
    const Call& call, const Rgba8& picture, std::size_t width, std::size_t height
);
// Pillow's rotate(): counter-clockwise, bicubic, grown so that all corners fit, transparent around.
Result<Rgba8> rotated(const Call& call, const Rgba8& picture, double degrees);

}  // namespace nodes
}  // namespace comfyd::engine
