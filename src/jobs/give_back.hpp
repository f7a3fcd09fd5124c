// What becomes of a job whose worker leaves before it is done: it goes back to its place in the
// queue, and the attempt does not count. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "jobs/job.hpp"

namespace comfyd::jobs {

// In the details of a failed attempt: its worker leaves, and nothing is wrong with the job.
inline constexpr std::string_view kGivenBack = "given_back";

// After such an attempt: to be queued again at once, with as many attempts to go as before it.
Result<Change> give_back(const Job& job, Failure failure, std::uint64_t sequence, Time now);

}  // namespace comfyd::jobs
