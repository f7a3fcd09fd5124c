// By when an operation must have ended. Made once, where it begins, and handed to its parts, so
// that together they take no longer than the whole may. By the steady clock; a value.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>

#include "base/time.hpp"

namespace comfyd {

class Deadline {
public:
    using Ticks = std::chrono::steady_clock;

    static Deadline in(Ticks::duration time) {
        const Ticks::time_point now = Ticks::now();
        return Deadline(
            time < Ticks::time_point::max() - now ? now + time : Ticks::time_point::max()
        );
    }
    static Deadline never() { return Deadline(Ticks::time_point::max()); }

    bool has_passed() const { return Ticks::now() >= at_; }
    // 0 when it has passed. Rounded up: whoever waits so long does not wake before it.
    Millis left() const {
        return at_ == Ticks::time_point::max()
                   ? Millis::max()
                   : std::max(std::chrono::ceil<Millis>(at_ - Ticks::now()), Millis(0));
    }
    // For a part that has a limit of its own.
    Deadline or_in(Ticks::duration time) const { return std::min(*this, in(time)); }
    Ticks::time_point at() const { return at_; }

    auto operator<=>(const Deadline&) const = default;

private:
    explicit Deadline(Ticks::time_point at) : at_(at) {}

    Ticks::time_point at_;
};

}  // namespace comfyd
