#include "base/circuit_breaker.hpp"

#include <algorithm>
#include <cmath>

namespace comfyd {

void CircuitBreaker::succeeded() {
    failures_ = 0;
    opened_ = 0;
    is_open_ = false;
}

bool CircuitBreaker::failed(Time now, double jitter) {
    ++failures_;
    const bool was_resting = is_open_ && now < open_until_;  // of a call from before it opened
    if (was_resting || (!is_open_ && failures_ < limits_.failures)) {
        return false;
    }
    open(now, jitter);
    return true;
}

void CircuitBreaker::trip(Time now, double jitter) {
    failures_ = std::max(failures_, limits_.failures);
    open(now, jitter);
}

// The longest while less a fifth, at random.
void CircuitBreaker::open(Time now, double jitter) {
    constexpr int kDoublingsMax = 20;
    constexpr double kSpread = 0.2;
    const double longer = std::ldexp(
        static_cast<double>(limits_.open_first.count()), std::min(opened_, kDoublingsMax)
    );
    const double span = std::min(longer, static_cast<double>(limits_.open_max.count()));
    open_until_ = now + Millis(static_cast<std::int64_t>(span * (1 - kSpread * jitter)));
    ++opened_;
    is_open_ = true;
}

CircuitBreaker::State CircuitBreaker::state(Time now) const {
    if (!is_open_) {
        return State::closed;
    }
    return now < open_until_ ? State::open : State::half_open;
}

Millis CircuitBreaker::wait(Time now) const {
    return is_open_ ? std::max(Millis(0), open_until_ - now) : Millis(0);
}

std::string_view to_string(CircuitBreaker::State state) {
    switch (state) {
        case CircuitBreaker::State::closed:
            return "closed";
        case CircuitBreaker::State::open:
            return "open";
        case CircuitBreaker::State::half_open:
            break;
    }
    return "half_open";
}

}  // namespace comfyd
