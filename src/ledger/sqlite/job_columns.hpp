#pragma once

#include "ledger/job_row.hpp"
#include "ledger/sqlite/database.hpp"

// Columns for `SELECT … FROM jobs j JOIN job_details d … LEFT JOIN job_results r …`, in the order
// of ledger/job_row.hpp.
#define COMFYD_JOB_COLUMNS                                                                        \
    "j.id, j.tenant, j.dialect, j.state, j.priority, j.created_at, j.started_at, j.finished_at, " \
    "j.not_before, j.deadline, j.timeout_ms, j.attempt, j.max_attempts, j.worker, "               \
    "j.cancel_requested, j.sequence, j.revision, j.workflow_id, j.node_count, "                   \
    "j.webhook_events IS NOT NULL, d.metadata, d.dialect_data, r.failure, r.outputs, "            \
    "r.ui_outputs, r.usage, j.reuse_key, j.reused_from, j.shared_prompt, j.shared_place, "        \
    "d.queued_data, 'main'"
// j.result is NULL when there is no result, which saves looking for it.
#define COMFYD_JOB_JOINS                               \
    " CROSS JOIN job_details d ON d.number = j.number" \
    " LEFT JOIN job_results r ON r.number = j.result "
