// Rules of fleet/instances/plan.hpp, each of which can be left out: a simulation that does not
// notice is none.
#pragma once

#include <vector>

#include "fleet/instances/plan.hpp"

namespace comfyd::simulation {

enum class InstanceBreak {
    none,
    listings_from_before,  // the latest deed: they are believed
    absence_at_once,       // of what was ordered just now: it is believed
    strays_by_age_alone,   // also those that an instance knows
};

inline std::vector<fleet::Step> plan_without(InstanceBreak rule, fleet::View view) {
    for (auto& [id, aside] : view.aside) {
        if (rule == InstanceBreak::listings_from_before) {
            aside.acted = 0;
        }
    }
    for (auto& [provider, listing] : view.listings) {
        if (rule == InstanceBreak::absence_at_once) {
            listing.at += std::chrono::hours(1);
        } else if (rule == InstanceBreak::strays_by_age_alone) {
            listing.known.clear();
        }
    }
    return fleet::plan(view);
}

}  // namespace comfyd::simulation
