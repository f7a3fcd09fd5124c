// What is told of jobs to those who subscribe to them. Values that never change: all who hear of
// something share it.
#pragma once

#include <cstddef>
#include <memory>
#include <variant>

#include "jobs/job.hpp"

namespace comfyd::events {

using JobPtr = std::shared_ptr<const jobs::Job>;
using EventPtr = std::shared_ptr<const jobs::Event>;

// The job counts as unfinished from now on: accepted just now, brought back by its owner, or read
// back at the start.
struct Arrived {
    enum class How { accepted, retried, restored };

    JobPtr job;
    How how = How::accepted;
    std::size_t unfinished = 0;  // jobs of its tenant, it included
};

// A change that the ledger has.
struct Changed {
    JobPtr job;  // after it
    EventPtr event;
    std::size_t unfinished = 0;  // jobs of its tenant, after it
};

// Progress, a preview or an output. The ledger does not have it.
struct Shown {
    EventPtr event;
};

// A worker's own words.
struct Said {
    JobId job;
    jobs::WorkerMessage message;
};

using Notice = std::variant<Arrived, Changed, Shown, Said>;

}  // namespace comfyd::events
