// What happened lately: how fast work arrives, and the most machines that were needed. Plain values
// that their owner shows the time; bounded.
#pragma once

#include <deque>

#include "base/time.hpp"

namespace comfyd::autoscale {

// The speed of a counter that only grows. One that is smaller than before has begun anew.
class Arrivals {
public:
    static constexpr Millis kKept = std::chrono::seconds(60);

    void note(Time now, double total_s);
    // GPU-seconds a second: machines that would be busy all the time. What is not known of the
    // window counts as nothing.
    double rate(Time now, Millis window) const;
    // Likewise, without the part of the window in which the most came: what came at once is seen
    // where it waits, and says nothing of what is to come.
    double lasting_rate(Time now, Millis window, int parts) const;

private:
    double total_until(Time at) const;

    struct Sample {
        Time at;
        double total_s;
    };
    std::deque<Sample> samples_;  // a second apart
};

// The largest of the values of a window.
class RecentMost {
public:
    void note(Time now, int value, Millis window);
    int most() const { return values_.empty() ? 0 : values_.front().value; }
    bool empty() const { return values_.empty(); }

private:
    struct Value {
        Time at;
        int value;
    };
    std::deque<Value> values_;  // each smaller than the one before, and later
};

}  // namespace comfyd::autoscale
