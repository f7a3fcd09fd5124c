// What is done about an attempt that failed: another one, where and when, or none, and what the
// client is told. Pure: decides by the job as it is stored and by its attempts before, so that
// whoever leads next decides alike. docs/failures.md has it cause by cause.
#pragma once

#include <array>
#include <vector>

#include "jobs/cause.hpp"
#include "jobs/job.hpp"
#include "jobs/past_attempts.hpp"
#include "jobs/retry_budget.hpp"

namespace comfyd::jobs {

struct FailurePolicy {
    FailurePolicy();

    // How many attempts that failed by a cause are followed by another one, below the job's own
    // limit of attempts.
    std::array<int, kCauses> retries{};
    int retries_of(Cause cause) const { return retries[static_cast<std::size_t>(cause)]; }
    int poison_workers = 2;       // a job that took down so many gets no other
    double timeout_growth = 1.5;  // of an attempt that follows one that was too slow
    RetryBudget::Limits budget{};
};

struct Verdict {
    Failure failure;         // with its cause, and what was made of it
    bool retries = false;    // another attempt follows
    Millis delay{};          // before it
    Millis timeout{};        // of it
    bool is_costly = false;  // it repeats what has used a worker's time: the fleet has a budget
};

// `before`: the attempts before this one, of this life of the job. `jitter` in 0..1 spreads what
// failed together.
Verdict judge_failure(
    const Job& job,
    Failure failure,
    const std::vector<PastAttempt>& before,
    const FailurePolicy& policy,
    double jitter
);

// In the details of a failure that is followed by another attempt: workers on which the job has
// failed. Others are preferred.
inline constexpr std::string_view kAvoidKey = "avoid";
std::vector<std::string> workers_to_avoid(const Job& job);
// It was there when a worker went down: it runs alone, so that the next one takes no others along.
bool is_suspect(const Job& job);

// The change that ends a job without success tells of the outputs that were finished before.
void keep_finished(Change& ended, std::vector<Output> outputs, json::object ui_outputs);

}  // namespace comfyd::jobs
