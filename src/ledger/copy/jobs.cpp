#include "ledger/copy/table_copy.hpp"
#include "ledger/mentioned_assets.hpp"
#include "ledger/postgres/telling.hpp"

namespace comfyd::ledger::copying {
namespace {

Result<> copy_rows(Copy& copy) {
    return copy.table(
        "jobs",
        "SELECT id, tenant, state, revision, sequence, priority, created_at, started_at, "
        "finished_at, not_before, deadline, timeout_ms, attempt, max_attempts, cancel_requested, "
        "node_count, dialect, worker, workflow_id, webhook_events, reuse_key, reused_from, "
        "shared_prompt, shared_place FROM jobs ORDER BY id",
        "INSERT INTO jobs (id, domain, tenant, state, outcome, revision, sequence, epoch, "
        "priority, "
        "created_at, started_at, finished_at, not_before, deadline, timeout_ms, attempt, "
        "max_attempts, cancel_requested, node_count, dialect, worker, workflow_id, webhook_events, "
        "reuse_key, reused_from, shared_prompt, shared_place) SELECT n.id, 'main', n.tenant, "
        "n.state, CASE WHEN n.state >= 3 THEN n.state END, n.revision, n.sequence, 0, n.priority, "
        "n.created_at, n.started_at, n.finished_at, n.not_before, n.deadline, n.timeout_ms, "
        "n.attempt, n.max_attempts, n.cancel_requested <> 0, n.node_count, n.dialect, n.worker, "
        "n.workflow_id, n.webhook_events, n.reuse_key, n.reused_from, n.shared_prompt, "
        "n.shared_place FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
        "$15, $16, $17, $18, $19, $20, $21, $22, $23, $24) AS n (id, tenant, state, revision, "
        "sequence, priority, created_at, started_at, finished_at, not_before, deadline, "
        "timeout_ms, attempt, max_attempts, cancel_requested, node_count, dialect, worker, "
        "workflow_id, webhook_events, reuse_key, reused_from, shared_prompt, shared_place)",
        {kUuid,    kText,    kInteger, kInteger, kInteger, kInteger, kInteger, kInteger,
         kInteger, kInteger, kInteger, kInteger, kInteger, kInteger, kInteger, kInteger,
         kText,    kText,    kText,    kText,    kText,    kUuid,    kText,    kInteger},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.string(1),
                row.integer(2),
                row.integer(3),
                row.integer(4),
                row.integer(5),
                row.integer(6),
                number(row, 7),
                number(row, 8),
                number(row, 9),
                number(row, 10),
                row.integer(11),
                row.integer(12),
                row.integer(13),
                row.integer(14),
                row.integer(15),
                row.string(16),
                row.string(17),
                row.string(18),
                text(row, 19),
                text(row, 20),
                id(row, 21),
                text(row, 22),
                number(row, 23)
            );
        }
    );
}

Result<> copy_specs(Copy& copy) {
    return copy.table(
        "job_specs",
        "SELECT j.id, d.queued_sequence, d.queued_data, d.requirement, d.profile, d.metadata, "
        "d.dialect_data, s.spec, s.extra_data, s.workflow FROM jobs j "
        "JOIN job_details d ON d.number = j.number JOIN job_specs s ON s.number = j.number",
        "INSERT INTO job_specs (job, queued_sequence, queued_data, requirement, profile, metadata, "
        "dialect_data, spec, extra_data, workflow) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, "
        "$7, $8, $9, $10)",
        {kUuid, kInteger, kText, kText, kText, kText, kText, kText, kText, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.integer(1),
                text(row, 2),
                row.string(3),
                text(row, 4),
                text(row, 5),
                text(row, 6),
                row.string(7),
                text(row, 8),
                row.string(9)
            );
        }
    );
}

// SQLite has those of unfinished jobs alone.
Result<> copy_job_assets(Copy& copy) {
    return copy.table(
        "job_assets",
        "SELECT j.id, s.workflow FROM jobs j JOIN job_specs s ON s.number = j.number",
        "INSERT INTO job_assets (job, asset) SELECT * FROM unnest($1, $2)",
        {kUuid, kText},
        [](const Query& row, postgres::Table& into) {
            const MentionedAssets mentioned = mentioned_assets(row.text(1));
            for (const AssetId& asset : mentioned.ids) {
                into.add(row.uuid(0), asset.to_string());
            }
            for (const std::string& hash : mentioned.hashes) {
                into.add(row.uuid(0), hash);
            }
        }
    );
}

Result<> copy_results(Copy& copy) {
    return copy.table(
        "job_results",
        "SELECT j.id, r.failure, r.outputs, r.ui_outputs, r.usage FROM jobs j "
        "JOIN job_results r ON r.number = j.result",
        "INSERT INTO job_results (job, failure, outputs, ui_outputs, usage) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5)",
        {kUuid, kText, kText, kText, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.uuid(0), text(row, 1), text(row, 2), text(row, 3), text(row, 4));
        }
    );
}

Result<> copy_events(Copy& copy) {
    return copy.table(
        "job_events",
        "SELECT j.id, e.sequence, e.type, e.at, e.state, e.data FROM job_events e "
        "JOIN jobs j ON j.number = e.number",
        "INSERT INTO job_events (job, sequence, type, at, state, data) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6)",
        {kUuid, kInteger, kInteger, kInteger, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.integer(1),
                row.integer(2),
                row.integer(3),
                row.integer(4),
                text(row, 5)
            );
        }
    );
}

Result<> copy_keys(Copy& copy) {
    return copy.table(
        "idempotency_keys",
        "SELECT tenant, key, job, request_hash, created_at FROM idempotency_keys",
        "INSERT INTO idempotency_keys (tenant, key, job, request_hash, created_at) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5)",
        {kText, kText, kUuid, kText, kInteger},
        [](const Query& row, postgres::Table& into) {
            into.add(row.string(0), row.string(1), row.uuid(2), row.string(3), row.integer(4));
        }
    );
}

// One that SQLite keeps blocked behind another is pending like that one.
Result<> copy_outbox(Copy& copy) {
    return copy.table(
        "outbox",
        "SELECT job, endpoint, sequence, tenant, event, CASE state WHEN 1 THEN 0 ELSE state END, "
        "attempts, created_at, next_attempt_at, ended_at, error, log FROM outbox",
        "INSERT INTO outbox (job, endpoint, sequence, tenant, event, state, attempts, created_at, "
        "next_attempt_at, ended_at, error, log) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        {kUuid,
         kText,
         kInteger,
         kText,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kText,
         kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.string(1),
                row.integer(2),
                row.string(3),
                row.integer(4),
                row.integer(5),
                row.integer(6),
                row.integer(7),
                row.integer(8),
                number(row, 9),
                text(row, 10),
                text(row, 11)
            );
        }
    );
}

Result<> copy_targets(Copy& copy) {
    return copy.table(
        "outbox_targets",
        "SELECT job, endpoint, target FROM outbox_targets",
        "INSERT INTO outbox_targets (job, endpoint, target) SELECT * FROM unnest($1, $2, $3)",
        {kUuid, kText, kBytes},
        [telling =
             postgres::Telling(nullptr, copy.texts())](const Query& row, postgres::Table& into) {
            const JobId job{row.uuid(0)};
            const std::string endpoint = row.string(1);
            into.add(job.uuid, endpoint, telling.write_target(row.string(2), job, endpoint));
        }
    );
}

}  // namespace

Result<> copy_jobs(Copy& copy) {
    for (const auto table :
         {copy_rows,
          copy_specs,
          copy_job_assets,
          copy_results,
          copy_events,
          copy_keys,
          copy_outbox,
          copy_targets}) {
        if (auto copied = table(copy); !copied) {
            return copied;
        }
    }
    return {};
}

}  // namespace comfyd::ledger::copying
