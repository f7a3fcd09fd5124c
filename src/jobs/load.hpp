// What waits for the workers of a domain and what they do, for whoever decides how many machines
// there shall be, which ones, and which of them is the least loss. Plain values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/requirement.hpp"
#include "jobs/fleet.hpp"
#include "scheduler/scheduler.hpp"

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
        // At a time; those that share a run are one. Fetches of files that jobs wait for are some,
        // too: who is at one must not be given up.
        std::size_t jobs = 0;
        double seconds = 0;           // of GPU time that they still take
        std::size_t wanted = 0;       // waiting jobs that need a model which it has loaded
        std::size_t best_effort = 0;  // of its jobs; not told to other nodes
    };

    std::vector<Waiting> waiting;  // the most seconds first
    std::vector<Use> workers;
    // What waits by class and model, and the seconds of all that ever came, by the pool that it
    // asks for: for who decides where it is led. Not told to other nodes.
    std::vector<scheduler::Backlog> backlog{};
    std::map<std::string, double> arrived_s{};
    // By type of GPU, as its workers tell it: how many times as fast as one of them. Likewise.
    std::map<std::string, double> gpu_speeds{};
};

}  // namespace comfyd::jobs
