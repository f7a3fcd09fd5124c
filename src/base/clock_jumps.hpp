// Notices that the time of day was set, by a clock that nobody sets. Whoever keeps times of day at
// which something is due looks here before it asks what is. One owner.
#pragma once

#include "base/time.hpp"

namespace comfyd {

class ClockJumps {
public:
    // A clock that is slowed down or hurried on to be right again does not jump.
    static constexpr Millis kLeast{500};

    // Both outlive it.
    ClockJumps(const Clock& day, const Clock& steady) : day_(day), steady_(steady), seen_(read()) {}

    // By how much it was set since the last look: less than 0 is back. Nothing below kLeast.
    Millis look() {
        const Pair now = read();
        const Pair before = seen_;
        // Read at two moments: they would tell of a jump that never was. The next look will do.
        if (now.took >= kLeast / 2) {
            return Millis(0);
        }
        seen_ = now;
        const Millis by = (now.day - before.day) - (now.steady - before.steady);
        return by < kLeast && by > -kLeast ? Millis(0) : by;
    }

private:
    struct Pair {
        Time day{};
        Time steady{};
        Millis took{0};
    };
    Pair read() const {
        const Time begun = steady_.now();
        const Time day = day_.now();
        const Time done = steady_.now();
        return {day, done, done - begun};
    }

    const Clock& day_;
    const Clock& steady_;
    Pair seen_;
};

}  // namespace comfyd
