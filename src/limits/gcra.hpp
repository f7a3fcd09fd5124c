// The generic cell rate algorithm: how far ahead of its rate a sender may be, kept as one number,
// the time at which it will have used up nothing (its "tat"). A whole minute's worth may come at
// once; after that one unit in each interval. Pure; times are microseconds since 1970.
#pragma once

#include <cstdint>

namespace comfyd::limits {

struct Rate {
    std::int64_t interval = 0;   // for one unit
    std::int64_t tolerance = 0;  // what may be used ahead: the burst
};
// REQUIRES: limit > 0. Less than one a minute is one in so many minutes.
Rate per_minute(double limit);

// What a cost takes of the tolerance, which is the most that one may cost.
std::int64_t step_of(const Rate& rate, double cost);

struct Bid {
    bool fits = false;
    std::int64_t tat = 0;        // to be kept, where it fits
    std::int64_t wait = 0;       // until it would fit; 0: it does
    std::int64_t remaining = 0;  // units that fit at once afterwards
    std::int64_t next = 0;       // until there is one more of them
};
// `tat` 0: nothing was used. One that lies too far ahead, because a clock was set or the limit
// raised, counts as if all was used just now. A cost above the burst counts as the burst.
Bid weigh(const Rate& rate, std::int64_t tat, std::int64_t now, double cost);

}  // namespace comfyd::limits
