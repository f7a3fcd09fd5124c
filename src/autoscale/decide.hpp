// How many machines a pool shall have now, and why. Pure: the same view and memory give the same
// decision; the only clock is the one handed in. docs/autoscaling.md tells the whole story.
//
// - The need of a moment is what keeps the targets of the classes (need.hpp). Best effort has no
//   target and starts nothing, but after an hour in which there was no machine at all.
// - More are started from nothing and in a burst at once, otherwise once in `up_cooldown`.
// - Fewer are kept once that is the most that was needed for `idle_timeout`, and never in a burst
//   and the minute after it. Who shrinks a pool takes idle machines alone.
// - A machine that idles though work waits shows that more of its kind would not help (its tenant
//   has a limit, its workers rest): nothing more is started on its account for some minutes.
// - Budgets come last: nothing is started that cannot be paid.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "autoscale/need.hpp"

namespace comfyd::autoscale {

enum class Why {
    enough,    // what there is does
    work,      // what waits
    zero,      // likewise, and there was no machine
    burst,     // work comes much faster than it is done
    others,    // what waits wants another kind of machine
    minimum,   // as the operator wants it
    forecast,  // work of past days at this hour
    spare,     // idle ones that the operator wants beside the busy ones
    batch,     // best effort has waited for too long
    idle,      // not needed any more
    kept,      // not needed now, but lately
    cooldown,  // others were started just now
    most,      // the pool has as many as it may
    no_use,    // machines idle though work waits
    budget,    // there is no money
};
std::string_view to_string(Why why);

struct Decision {
    int machines = 0;  // there shall be
    int were = 0;
    Why why = Why::enough;
    std::string sentence{};  // for people
    Numbers numbers{};
    // Also those that work are given up, once they have ended what they do.
    bool drains = false;
    std::vector<std::size_t> offers{};  // places in the view, which to try first
};

Decision decide(const PoolView& pool, Memory& memory, Time now);

// Offers on which so much work ends cheapest first: what is paid from the order to its end. Where a
// price is not known, as they are.
std::vector<std::size_t> cheapest_first(
    const std::vector<Offer>& offers, const Starts& starts, double load_s, double work_s
);

// For people.
std::string sentence_of(const Decision& decision, const PoolView& pool, bool is_burst);

}  // namespace comfyd::autoscale
