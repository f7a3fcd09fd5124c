// Tells of stalls of the core in the log: what held it up and for how long, at most once a second,
// so that a machine that is too slow for its load does not drown in lines. One executor.
#pragma once

#include <cstddef>
#include <optional>

#include "base/stall_watch.hpp"
#include "base/time.hpp"

namespace comfyd::app {

class StallLog {
public:
    explicit StallLog(const Clock& clock) : clock_(clock) {}

    // True: a line was written.
    bool tell(const Stall& stall);

private:
    const Clock& clock_;
    std::optional<Time> told_at_;
    std::size_t untold_ = 0;  // since then
};

}  // namespace comfyd::app
