// Waiting for a condition of another thread or process.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace comfyd::support {

// Generous: a test that waits for it has failed anyway, and a busy machine must not be the reason.
inline constexpr std::chrono::seconds kDeadline{30};

// True as soon as `predicate` is; false when the deadline passes first. Looks less and less often:
// mostly another process is asked, which costs both.
template <class Predicate>
bool wait_until(Predicate predicate, std::chrono::milliseconds deadline = kDeadline) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    for (std::chrono::milliseconds pause{1}; !predicate();
         pause = std::min(2 * pause, std::chrono::milliseconds(8))) {
        if (std::chrono::steady_clock::now() >= end) {
            return predicate();
        }
        std::this_thread::sleep_for(pause);
    }
    return true;
}

}  // namespace comfyd::support
