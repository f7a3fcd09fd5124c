// How one of several workers is chosen for a job, or that it waits. Pure functions of numbers.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scheduler/scheduler.hpp"

namespace comfyd::scheduler {

// A worker that could run the job: now, or (is_busy) when it is free and without a load.
struct Candidate {
    Numbers numbers;
    bool is_busy = false;
    // Jobs wait for the models that it would have to give up.
    bool is_wanted_elsewhere = false;
    bool ran_alike = false;  // its latest run was of the same profile
};

struct Question {
    // Free ones in the order in which they became free, then busy ones.
    std::vector<Candidate> candidates;
    bool has_models = false;       // the job needs some
    double queue_s = 0;            // what waits for the same model, this job included
    std::size_t warm_workers = 0;  // that have the model
};

struct Choice {
    std::optional<std::size_t> candidate;  // a free one; nullopt: it waits
    std::optional<std::size_t> other;      // the next best; when it waits: for whom
    Why why = Why::only_choice;
};

class Policy {
public:
    virtual ~Policy() = default;
    // REQUIRES: at least one candidate that is not busy.
    virtual Choice choose(const Question& question) const = 0;
    // Whether a worker may pass over older jobs for those whose models it has.
    virtual bool stays_with_models() const = 0;
};

std::unique_ptr<Policy> make_policy(PolicyName name);

// The score of the policy of that name: 0.40 how well the memory fits (best at 80 % in use) + 0.35
// how much of the models is there + 0.25 how little runs there.
double placement_score(const Numbers& numbers, std::uint64_t vram_total);

}  // namespace comfyd::scheduler
