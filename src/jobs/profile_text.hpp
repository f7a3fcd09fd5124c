// A profile as text, for the ledger. Without the requirement, which is stored on its own.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/profile.hpp"

namespace comfyd::jobs {

// REQUIRES: not null.
std::string encode_profile(const scheduler::ProfilePtr& profile);
// What is missing or not as it should be counts as not known: losing a profile costs a worse
// choice of worker, not a job.
scheduler::ProfilePtr decode_profile(std::string_view text, Requirement requirement);

}  // namespace comfyd::jobs
