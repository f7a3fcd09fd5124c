// How soon a service may be asked again, by what its answers said: Retry-After, and the RateLimit
// header that says how many requests are left in each window. Pure: it is told the time.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/time.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {

// `"minute";r=0;t=12, "hour";r=2800;t=1812` -> 12 s: the longest of the windows that have nothing
// left. Nullopt: there is something left in all, or the header is of another form.
std::optional<Millis> parse_rate_limit(std::string_view header);

class CloudPace {
public:
    using Moment = std::chrono::steady_clock::time_point;

    // For a 429 that says nothing else.
    static constexpr std::chrono::seconds kPause{10};
    // Nothing a service says closes it for longer.
    static constexpr std::chrono::hours kPauseMax{1};

    // `wall` is the time of the calendar, for a Retry-After that names a date.
    void heard(int status, const net::Headers& headers, Moment now, Time wall);
    // 0: now.
    Millis wait(Moment now) const;

private:
    Moment open_at_{};
};

}  // namespace comfyd::fleet
