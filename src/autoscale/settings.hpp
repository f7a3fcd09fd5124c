// What an operator says of how many machines a pool may have. Plain values; pure.
#pragma once

#include <vector>

#include "base/budget.hpp"
#include "base/time.hpp"

namespace comfyd::autoscale {

using comfyd::Budget;

// At least so many machines at these hours of these days, in UTC.
struct Minimum {
    unsigned weekdays = 0x7F;  // a bit for each, Monday is 1
    int from_minute = 0;       // of the day
    int to_minute = 24 * 60;   // not included; smaller than `from_minute`: over midnight
    int machines = 0;

    bool holds(Time now) const;
};

struct Settings {
    int min = 0;
    int max = 10;
    int spare = 0;  // idle ones beside those that work, while any works
    std::vector<Minimum> schedule{};
    bool uses_forecast = true;
    Millis idle_timeout = std::chrono::seconds(300);  // what is not needed for so long goes
    Millis up_cooldown = std::chrono::seconds(30);  // between two starts, but from 0 or in a burst
    Millis spot_wait = std::chrono::seconds(60);    // before on-demand stands in for spot
    Budget budget{};
    int slots = 1;  // prompts at once of one machine
};

}  // namespace comfyd::autoscale
