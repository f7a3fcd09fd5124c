// What waits for the workers of a domain and what they do, for whoever decides how many machines
// there shall be, which ones, and which of them is the least loss. Plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/requirement.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::jobs {

struct Load {
    // Jobs that ask for one kind of machine; those that ask for none are a kind, too.
    struct Waiting {
        MachineWish machine;
        std::size_t jobs = 0;
        double seconds = 0;      // of GPU time, expected
        bool is_served = false;  // some worker could take them, now or when it is free
    };
    struct Use {
        std::string worker;
        std::string pool;
        WorkerStatus status = WorkerStatus::starting;
        int slots = 1;
        std::size_t jobs = 0;    // at a time; those that share a run are one
        double seconds = 0;      // of GPU time that they still take
        std::size_t wanted = 0;  // waiting jobs that need a model which it has loaded
    };

    std::vector<Waiting> waiting;  // the most seconds first
    std::vector<Use> workers;
};

}  // namespace comfyd::jobs
