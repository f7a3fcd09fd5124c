// Waiting for a condition of another thread or process.
#pragma once

#include <chrono>
#include <thread>

namespace comfyd::support {

// Generous: a test that waits for it has failed anyway, and a busy machine must not be the reason.
inline constexpr std::chrono::seconds kDeadline{30};

// True as soon as `predicate` is; false when the deadline passes first.
template <class Predicate>
bool wait_until(Predicate predicate, std::chrono::milliseconds deadline = kDeadline) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!predicate()) {
        if (std::chrono::steady_clock::now() >= end) {
            return predicate();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

}  // namespace comfyd::support
