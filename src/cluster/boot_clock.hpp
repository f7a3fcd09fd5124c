// Time that only goes on, at one pace, also while the machine sleeps or the process is stopped:
// what a lease is measured by. Nobody sets it, unlike the clock on the wall.
#pragma once

#include <time.h>

#include "base/time.hpp"

namespace comfyd::cluster {

class BootClock {
public:
    virtual ~BootClock() = default;
    virtual Millis now() const = 0;  // since some moment that stays the same. Any thread
};

class SystemBootClock final : public BootClock {
public:
    Millis now() const override {
        timespec time{};
        ::clock_gettime(CLOCK_BOOTTIME, &time);
        return Millis(time.tv_sec * 1'000 + time.tv_nsec / 1'000'000);
    }
};

}  // namespace comfyd::cluster
