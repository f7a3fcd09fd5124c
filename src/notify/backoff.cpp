#include "notify/backoff.hpp"

#include <algorithm>

namespace comfyd::notify {

Millis retry_wait(Millis first, Millis longest, int attempts_before, double jitter) {
    Millis wait = std::min(std::max(first, Millis(1)), longest);
    for (int i = 0; i < attempts_before && wait < longest; ++i) {
        wait = std::min(wait * 2, longest);
    }
    const double share = 0.5 + 0.5 * std::clamp(jitter, 0.0, 1.0);
    return Millis(static_cast<std::int64_t>(static_cast<double>(wait.count()) * share));
}

}  // namespace comfyd::notify
