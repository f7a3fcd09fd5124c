// Rules of the design, each of which can be left out: a simulation that does not notice is none.
#pragma once

namespace comfyd::simulation {

enum class Break {
    none,
    trust_from_answer,    // counted from when the answer came, not from the sending
    trust_by_wall_clock,  // which somebody sets
    no_trust,             // whoever was elected sends
    no_quiet_time,        // an absent prompt is sent again at once
    no_fence_in_ledger,   // whoever was elected writes
    no_fence_in_worker,   // that says it has one
};

}  // namespace comfyd::simulation
