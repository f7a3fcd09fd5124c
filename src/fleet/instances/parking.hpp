// Machines that are stopped instead of removed, where their provider keeps the disk: which of a
// pool may be, and which can be started again. A part of plan(); pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fleet/instances/plan.hpp"

namespace comfyd::fleet {

// The instances that may be stopped, or stay so, by their ids: those that are first, then those
// that drain for it, then of `superfluous`, which cost least to give up.
std::set<std::string> places_to_park(
    const View& view, const PoolGoal& pool, const std::vector<const Instance*>& superfluous
);

struct Stopped {
    bool is_stopped;  // or is about to be: it is back sooner than another would be there
    Time since;
    const Instance* instance;

    auto operator<=>(const Stopped&) const = default;
};
// Of those that may stay: what can be started first, then the latest, as what it has on its disk is
// newest. REQUIRES: the view outlives it.
std::vector<Stopped> find_stopped(
    const View& view, const PoolGoal& pool, const std::set<std::string>& may_park
);

}  // namespace comfyd::fleet
