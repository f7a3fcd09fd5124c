// Reads about jobs: the statements, and how their answers are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/job_row.hpp"
#include "ledger/postgres/connection.hpp"
#include "ledger/postgres/telling.hpp"

namespace comfyd::ledger::postgres {

// Columns for `SELECT … FROM jobs j` with the joins below, in the order of ledger/job_row.hpp.
#define COMFYD_PG_JOB_COLUMNS                                                                     \
    "j.id, j.tenant, j.dialect, j.state, j.priority, j.created_at, j.started_at, j.finished_at, " \
    "j.not_before, j.deadline, j.timeout_ms, j.attempt, j.max_attempts, j.worker, "               \
    "j.cancel_requested, j.sequence, j.revision, j.workflow_id, j.node_count, "                   \
    "j.webhook_events IS NOT NULL, s.metadata, s.dialect_data, r.failure, r.outputs, "            \
    "r.ui_outputs, r.usage, j.reuse_key, j.reused_from, j.shared_prompt, j.shared_place, "        \
    "s.queued_data, j.domain"
#define COMFYD_PG_JOB_JOINS \
    " JOIN job_specs s ON s.job = j.id LEFT JOIN job_results r ON r.job = j.id "

inline constexpr int kListLimitMax = 1000;
inline constexpr int kUnfinishedLimitMax = 10'000;

Statement find_job(const JobId& id);
Result<std::optional<jobs::Job>> read_found_job(const Rows& rows);

// jobs::Ledger::stamp().
Statement find_stamp(const JobId& id);
Result<std::optional<jobs::Stamp>> read_stamp(const Rows& rows);

// The job that holds the key, as jobs::Ledger::find_key() answers.
Statement find_key(const std::string& tenant, const std::string& key, Time now);
Result<jobs::Accepted> read_key_holder(const Rows& rows);

Statement find_reusable(const std::string& tenant, const std::string& reuse_key);

Statement find_spec(const JobId& id);
Result<std::optional<jobs::Spec>> read_spec(
    const Rows& rows, const JobId& id, const Telling& telling
);

Statements find_events(const JobId& id, std::uint64_t after);
Result<std::vector<jobs::Event>> read_events(
    const std::vector<Rows>& answers, const JobId& id, std::uint64_t after
);

Statement count_jobs(const std::optional<std::string>& tenant);
jobs::StateCounts read_counts(const Rows& rows);

Statement find_unfinished(const std::optional<JobId>& after, int limit);
// Columns as of a job, then requirement and profile.
Result<jobs::Unfinished> read_unfinished(const Row& row);

// Newest first, one more than a page has.
Statement list_jobs(const jobs::ListQuery& query);
Result<jobs::Page> read_page(const Rows& rows, const jobs::ListQuery& query);

}  // namespace comfyd::ledger::postgres
