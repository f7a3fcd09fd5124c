// What the autoscaler remembers of a pool from one decision to the next. Owned by who asks for
// decisions, who also stores what must outlive a restart.
#pragma once

#include <optional>

#include "autoscale/history.hpp"
#include "autoscale/spending.hpp"
#include "autoscale/starts.hpp"
#include "autoscale/windows.hpp"

namespace comfyd::autoscale {

struct Memory {
    // Lost with the process: after a restart what there is is kept for as long as if it had just
    // been needed.
    Arrivals arrivals{};
    std::optional<double> arrived_s{};  // as of the latest decision
    RecentMost needs{};
    double busy = 0;  // machines, on average over about a minute
    std::optional<Time> decided_at{};
    std::optional<Time> burst_until{};
    std::optional<Time> grew_at{};
    std::optional<Time> unused_since{};  // a machine idles though work waits
    int useful = 0;                      // more machines than these are no use, until:
    std::optional<Time> useful_until{};
    std::optional<Time> batch_since{};  // best effort waits, and there is no machine
    bool works_for_batch = false;       // one was started for it, and stays until it is done

    Starts starts{};
    Starts wakes{};   // of machines that were stopped
    Starts phases{};  // of the others, by the phases that they went through
    Spending spent{};
    History history{};

    // Of what is durable.
    json::object to_json() const;
    static Memory from_json(const json::object& about);
};

}  // namespace comfyd::autoscale
