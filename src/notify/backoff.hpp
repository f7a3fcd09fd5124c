// When to try a delivery again. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::notify {

// `first`, doubled for every attempt made before, at most `longest`; `jitter` in 0..1 takes it from
// half of that to all.
Millis retry_wait(Millis first, Millis longest, int attempts_before, double jitter);

// The Retry-After header: seconds or an HTTP date. Nullopt when it is neither.
std::optional<Millis> parse_retry_after(std::string_view header, Time now);

}  // namespace comfyd::notify
