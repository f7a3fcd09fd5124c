// How often and after which pauses a store elsewhere is asked again.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace comfyd::assets {

struct Patience {
    int tries_max = 5;
    Millis first_pause{200};  // the longest that the first one may be; each next one twice that
    Millis longest_pause{20'000};
};

// The pause after so many tries: any length up to the longest, so that those who were refused
// together do not come back together.
Millis pause_after(int tries, const Patience& patience);
// The time that a slow line takes for so many bytes.
Millis time_for(std::uint64_t bytes);

}  // namespace comfyd::assets
