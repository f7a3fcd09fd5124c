#include "engine/pixels.hpp"

#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {

COMFYD_KERNEL void to_bytes(const float* from, std::size_t count, std::uint8_t* into) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < count; ++i) {
        const float scaled = from[i] * 255.0F;
        const float low = scaled > 0.0F ? scaled : 0.0F;
        into[i] = static_cast<std::uint8_t>(static_cast<int>(low < 255.0F ? low : 255.0F));
    }
}

}  // namespace comfyd::engine
