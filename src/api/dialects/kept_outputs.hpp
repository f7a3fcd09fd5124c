// What dialects tell of how outputs are kept (docs/results.md): nothing where they stay here as
// long as their job.
#pragma once

#include <optional>

#include "api/services.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

// `retention`, `expires_at`, `store`; and `expired`, where it is known what time it is.
void add_keeping(json::object& body, const jobs::Output& output, std::optional<Time> now);

// Adds to an answer about one job what must be looked up for it: `storage`, where its outputs are
// kept elsewhere ("stored", or "pending" while they are still here only); and where the request
// asked for them in the answer, `data` of each, as far as there is room, and `warnings` for the
// others. `outputs`: the job's as they stand in the body, in their order; null: it has none.
// Failures of the store.
Task<Result<>> complete_answer(
    const Services& services, jobs::Job job, json::object& body, json::value* outputs
);

// Whether complete_answer() adds what may be otherwise the next time, though nothing about the job
// has changed.
bool has_passing_parts(const jobs::Job& job);

}  // namespace comfyd::api
