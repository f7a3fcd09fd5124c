// The one way from what a dialect decoded to a job that can be queued. What happens there happens
// to every submission, in this order: the workflow is brought here and put in form, its parameters
// are set; the operator's rules, each node, the files that it names, what it needs of a worker and
// the checks that only a worker can make are judged; what is needed for its turn and for reuse is
// found. Runs on the executor of the connection that it came by.
#pragma once

#include <optional>

#include "admission/desk.hpp"
#include "admission/submission.hpp"

namespace comfyd::admission {

// All findings of the first rule that is broken. A request whose idempotency key has led to a job
// before fetches nothing. Seeds that were chosen for "random" are kept as
// dialect_data["chosen_parameters"].
Task<Decision<Admitted>> admit(const Desk& desk, Submission submission);

// The job that an earlier request with the same idempotency key made, for those who fetch files
// before they submit: `submission.request` says what was asked for. nullopt: there is none.
// Code::idempotency_key_reuse.
Task<Result<std::optional<jobs::Submitted>>> find_replay(
    const Desk& desk, const Submission& submission
);

}  // namespace comfyd::admission
