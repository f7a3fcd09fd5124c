// Whether something that others depend on is asked at all: after so many failures in a row it is
// left alone for a while (open), then one call of its owner's (half-open) decides. The while is
// longer each time until a call succeeds. A success resets the count. Pure; one owner, who makes
// one call at a time while it is half-open.
#pragma once

#include <string_view>

#include "base/time.hpp"

namespace comfyd {

class CircuitBreaker {
public:
    enum class State { closed, open, half_open };
    struct Limits {
        int failures = 5;  // in a row
        Millis open_first{60'000};
        Millis open_max{600'000};
    };
    explicit CircuitBreaker(Limits limits) : limits_(limits) {}

    void succeeded();
    // True: it has opened by this. `jitter` in 0..1 spreads those that opened together.
    bool failed(Time now, double jitter);
    // Opens at once, whatever the count: it is known to be broken.
    void trip(Time now, double jitter);

    State state(Time now) const;
    // Until a call may be made; nothing where one may.
    Millis wait(Time now) const;

private:
    void open(Time now, double jitter);

    Limits limits_;
    int failures_ = 0;  // in a row
    int opened_ = 0;    // likewise, without a success between
    bool is_open_ = false;
    Time open_until_{};
};

std::string_view to_string(CircuitBreaker::State state);

}  // namespace comfyd
