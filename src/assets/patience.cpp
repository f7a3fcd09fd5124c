#include "assets/patience.hpp"

#include <algorithm>
#include <cstdint>

#include "base/crypto.hpp"

namespace comfyd::assets {

Millis pause_after(int tries, const Patience& patience) {
    Millis longest = patience.first_pause;
    for (int i = 1; i < tries && longest < patience.longest_pause; ++i) {
        longest *= 2;
    }
    longest = std::min(longest, patience.longest_pause);
    std::uint32_t number = 0;
    random_bytes(&number, sizeof number);
    return Millis(static_cast<std::int64_t>(number) % (longest.count() + 1));
}

Millis time_for(std::uint64_t bytes) {
    constexpr std::uint64_t kBytesPerSecondMin = 32 * 1024;
    return std::chrono::seconds(bytes / kBytesPerSecondMin);
}

}  // namespace comfyd::assets
