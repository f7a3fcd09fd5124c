// Reads about jobs, over any connection. Microseconds each; list_jobs() looks at a bounded number
// of rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

inline constexpr int kListLimitMax = 1000;
inline constexpr int kUnfinishedLimitMax = 10'000;
// A filter that matches almost nothing must not hold a thread: after so many rows the page ends
// early, with a cursor.
inline constexpr int kListScanMax = 20'000;

inline constexpr Millis kIdempotencyKeyLife = std::chrono::hours(24);

Result<std::optional<jobs::Job>> find_job(Database& db, const JobId& id);
// jobs::Ledger::stamp().
Result<std::optional<jobs::Stamp>> find_stamp(Database& db, const JobId& id);
// nullopt: the key is free, or its day is over.
Result<std::optional<jobs::Accepted>> find_by_key(
    Database& db, const std::string& tenant, const std::string& key, Time now
);
// jobs::Ledger::find_reusable().
Result<std::optional<jobs::Job>> find_reusable_job(
    Database& db, const std::string& tenant, const std::string& reuse_key
);
Result<std::optional<jobs::Spec>> find_spec(Database& db, const JobId& id);
Result<std::vector<jobs::Event>> find_events(Database& db, const JobId& id, std::uint64_t after);
Result<jobs::StateCounts> count_jobs(Database& db, const std::optional<std::string>& tenant);
Result<std::vector<jobs::Unfinished>> find_unfinished(
    Database& db, const std::optional<JobId>& after, int limit
);
Result<jobs::Page> list_jobs(Database& db, const jobs::ListQuery& query);

}  // namespace comfyd::ledger::sqlite
