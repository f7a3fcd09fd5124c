// Reads the jobs of a data folder without taking part in its work: also while a server uses it.
#pragma once

#include <filesystem>
#include <functional>

#include "base/error.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"

namespace comfyd::ledger {

// Jobs made from `since` on and before `until`, newest first, until `visit` says false. Blocks.
// Code::storage_unavailable when the file is not there or is none of comfyd's.
Result<> read_history(
    const std::filesystem::path& database,
    Time since,
    Time until,
    const std::function<bool(const jobs::Job& job, const jobs::Spec& spec)>& visit
);

}  // namespace comfyd::ledger
