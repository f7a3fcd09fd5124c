// How values of the job model lie in columns. Empty JSON is NULL: most jobs have none, and reading
// it back is free.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "jobs/job.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

std::optional<std::string> encode(const json::object& object);
std::optional<std::string> encode(const json::array& array);
// Code::internal when the text is not what encode() wrote.
Result<json::object> decode_object(std::string_view text);
Result<json::array> decode_array(std::string_view text);

// Columns for `SELECT … FROM jobs j JOIN job_details d … LEFT JOIN job_results r …`, in the order
// of read_job().
#define COMFYD_JOB_COLUMNS                                                                        \
    "j.id, j.tenant, j.dialect, j.state, j.priority, j.created_at, j.started_at, j.finished_at, " \
    "j.not_before, j.deadline, j.timeout_ms, j.attempt, j.max_attempts, j.worker, "               \
    "j.cancel_requested, j.sequence, j.revision, j.workflow_id, j.node_count, "                   \
    "j.webhook_events IS NOT NULL, d.metadata, d.dialect_data, r.failure, r.outputs, "            \
    "r.ui_outputs, r.usage, j.reuse_key, j.reused_from, j.shared_prompt, j.shared_place, "        \
    "d.queued_data"
// j.result is NULL when there is no result, which saves looking for it.
#define COMFYD_JOB_JOINS                               \
    " CROSS JOIN job_details d ON d.number = j.number" \
    " LEFT JOIN job_results r ON r.number = j.result "
inline constexpr int kJobColumnCount = 31;
Result<jobs::Job> read_job(const Query& row);

// The parts of a Spec that have no column of their own. secret_extra_data is not among them.
std::string encode_spec(const jobs::Spec& spec);
Result<> decode_spec(std::string_view text, jobs::Spec& into);

// Which events a webhook wants, in one column: a name a line.
std::string encode_webhook_events(const jobs::Webhook& webhook);
bool wants_event(std::string_view webhook_events, jobs::EventType type);

}  // namespace comfyd::ledger::sqlite
