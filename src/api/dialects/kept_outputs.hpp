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

// Of a job whose outputs are kept elsewhere: "stored", or "pending" while they are still here only.
Task<Result<std::optional<std::string>>> storage_of(const Services& services, jobs::Job job);

}  // namespace comfyd::api
