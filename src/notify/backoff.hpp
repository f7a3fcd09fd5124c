// When to try a delivery again. Pure functions.
#pragma once

#include "base/time.hpp"

namespace comfyd::notify {

// `first`, doubled for every attempt made before, at most `longest`; `jitter` in 0..1 takes it from
// half of that to all.
Millis retry_wait(Millis first, Millis longest, int attempts_before, double jitter);

}  // namespace comfyd::notify
