// A clock that nobody can set, for waits that only this process knows of. What it says is no time
// of day: it is never shown nor stored.
#pragma once

#include "base/time.hpp"

namespace comfyd {

class SteadyClock final : public Clock {
public:
    Time now() const override {
        const auto since = std::chrono::steady_clock::now().time_since_epoch();
        return Time(std::chrono::duration_cast<Millis>(since));
    }
    // It has no state: one for all who have none of their own.
    static const SteadyClock& of_process() {
        static const SteadyClock clock;
        return clock;
    }
};

}  // namespace comfyd
