#include "ledger/postgres/batch.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "ledger/postgres/asset_store.hpp"

namespace comfyd::ledger::postgres {
namespace {

// Was the row of this job written by this transaction?
#define COMFYD_IF_WRITTEN                                           \
    "EXISTS (SELECT 1 FROM jobs j WHERE j.id = n.job AND j.xmin = " \
    "pg_current_xact_id()::xid)"
// The outputs that a job is answered with may have gone since they were found.
#define COMFYD_IF_KEPT                                                                          \
    "(n.reused IS NULL OR NOT EXISTS (SELECT 1 FROM unnest(string_to_array(n.reused, E'\\n')) " \
    "AS h (hash) WHERE NOT EXISTS (SELECT 1 FROM assets a WHERE a.hash = h.hash)))"
#define COMFYD_COUNT                                      \
    " ON CONFLICT (kind, tenant, state, slot) DO UPDATE " \
    "SET count = counters.count + excluded.count"

// An error, not an empty answer: all that comes behind it in the transaction is refused with it.
constexpr char kFence[] =
    "SELECT 1 / count(*) FROM (SELECT 1 FROM leases WHERE domain = $1 AND epoch = $2 AND node = $3 "
    "FOR KEY SHARE) l";

// Held until the end, so that nobody removes them meanwhile.
constexpr char kHoldAssets[] =
    "SELECT 1 FROM assets WHERE hash = ANY ($1) ORDER BY id FOR KEY SHARE";
constexpr char kHoldContents[] =
    "SELECT 1 FROM contents WHERE hash = ANY ($1) ORDER BY hash FOR KEY SHARE";

// Sorted: two nodes that insert the same keys wait for each other in the same order.
constexpr char kInsertKeys[] =
    "INSERT INTO idempotency_keys (tenant, key, job, request_hash, created_at) "
    "SELECT n.tenant, n.key, n.job, n.hash, $6 "
    "FROM unnest($1, $2, $3, $4, $5) AS n (tenant, key, job, hash, reused) "
    "WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = n.job) AND " COMFYD_IF_KEPT
    " ORDER BY n.tenant, n.key "
    "ON CONFLICT (tenant, key) DO UPDATE SET job = excluded.job, "
    "request_hash = excluded.request_hash, created_at = excluded.created_at "
    "WHERE idempotency_keys.created_at <= $7";
// A few for each new one keeps the table from growing and no transaction long.
constexpr char kDropOldKeys[] =
    "DELETE FROM idempotency_keys WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency_keys "
    "WHERE created_at <= $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)";

constexpr char kInsertJobs[] =
    "WITH made AS (INSERT INTO jobs (id, domain, tenant, state, outcome, revision, sequence, "
    "priority, created_at, started_at, finished_at, not_before, deadline, timeout_ms, attempt, "
    "max_attempts, cancel_requested, node_count, dialect, worker, workflow_id, webhook_events, "
    "reuse_key, reused_from, shared_prompt, shared_place, epoch) "
    "SELECT n.id, n.domain, n.tenant, n.state, n.outcome, n.revision, n.sequence, n.priority, "
    "n.created_at, n.started_at, n.finished_at, n.not_before, n.deadline, n.timeout_ms, n.attempt, "
    "n.max_attempts, n.cancel_requested <> 0, n.node_count, n.dialect, n.worker, n.workflow_id, "
    "n.webhook_events, n.reuse_key, n.reused_from, n.shared_prompt, n.shared_place, $29 "
    "FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, "
    "$19, $20, $21, $22, $23, $24, $25, $26, $27, $28) AS n (id, domain, tenant, state, outcome, "
    "revision, sequence, priority, created_at, started_at, finished_at, not_before, deadline, "
    "timeout_ms, attempt, max_attempts, cancel_requested, node_count, dialect, worker, "
    "workflow_id, "
    "webhook_events, reuse_key, reused_from, shared_prompt, shared_place, key, reused) "
    "WHERE (n.key IS NULL OR EXISTS (SELECT 1 FROM idempotency_keys k WHERE k.tenant = n.tenant "
    "AND "
    "k.key = n.key AND k.job = n.id)) AND " COMFYD_IF_KEPT
    " ON CONFLICT (id) DO NOTHING RETURNING id, tenant, state), "
    "counted AS (INSERT INTO counters (kind, tenant, state, slot, count) "
    "SELECT 0, tenant, state, $30, count(*) FROM made GROUP BY tenant, state" COMFYD_COUNT
    ") SELECT id FROM made";
constexpr char kInsertSpecs[] =
    "INSERT INTO job_specs (job, queued_sequence, queued_data, requirement, profile, metadata, "
    "dialect_data, spec, extra_data, workflow) SELECT n.* FROM unnest($1, $2, $3, $4, $5, $6, $7, "
    "$8, $9, $10) AS n (job, queued_sequence, queued_data, requirement, profile, metadata, "
    "dialect_data, spec, extra_data, workflow) WHERE " COMFYD_IF_WRITTEN
    " ON CONFLICT (job) DO NOTHING";
constexpr char kInsertSecrets[] =
    "INSERT INTO job_secrets (job, sealed) SELECT n.job, n.sealed FROM unnest($1, $2) "
    "AS n (job, sealed) WHERE " COMFYD_IF_WRITTEN " ON CONFLICT (job) DO NOTHING";
constexpr char kDropSecrets[] =
    "DELETE FROM job_secrets s USING unnest($1) AS n (job) WHERE s.job = n.job "
    "AND " COMFYD_IF_WRITTEN;
constexpr char kInsertJobAssets[] =
    "INSERT INTO job_assets (job, asset) SELECT n.job, n.asset FROM unnest($1, $2) "
    "AS n (job, asset) WHERE " COMFYD_IF_WRITTEN " ON CONFLICT (job, asset) DO NOTHING";

// `o` is the row as it was: every change raises the revision, so it is the one that is replaced.
constexpr char kUpdateJobs[] =
    "WITH changed AS (UPDATE jobs j SET state = n.state, outcome = n.outcome, "
    "revision = n.revision, sequence = n.sequence, priority = n.priority, "
    "started_at = n.started_at, finished_at = n.finished_at, not_before = n.not_before, "
    "deadline = n.deadline, timeout_ms = n.timeout_ms, attempt = n.attempt, "
    "max_attempts = n.max_attempts, cancel_requested = n.cancel_requested <> 0, "
    "worker = n.worker, reused_from = n.reused_from, shared_prompt = n.shared_prompt, "
    "shared_place = n.shared_place, epoch = $20, "
    "arrival = CASE WHEN o.outcome IS NOT NULL AND n.outcome IS NULL THEN pg_current_xact_id() "
    "ELSE o.arrival END "
    "FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, "
    "$19) AS n (id, state, outcome, revision, sequence, priority, started_at, finished_at, "
    "not_before, deadline, timeout_ms, attempt, max_attempts, cancel_requested, worker, "
    "reused_from, shared_prompt, shared_place, reused) JOIN jobs o ON o.id = n.id "
    "WHERE j.id = n.id AND j.revision = n.revision - 1 AND j.sequence < n.sequence "
    "AND " COMFYD_IF_KEPT
    " RETURNING j.id, j.tenant, o.state AS old_state, j.state), "
    "counted AS (INSERT INTO counters (kind, tenant, state, slot, count) "
    "SELECT 0, tenant, c.state, $21, sum(c.by) FROM changed, "
    "LATERAL (VALUES (old_state, -1), (changed.state, 1)) AS c (state, by) "
    "GROUP BY tenant, c.state HAVING sum(c.by) <> 0" COMFYD_COUNT ") SELECT id FROM changed";

constexpr char kInsertEvents[] =
    "INSERT INTO job_events (job, sequence, type, at, state, data) SELECT n.* "
    "FROM unnest($1, $2, $3, $4, $5, $6) AS n (job, sequence, type, at, state, data) "
    "WHERE " COMFYD_IF_WRITTEN " ON CONFLICT (job, sequence) DO NOTHING";
// Which events a webhook wants stands in its job's row: a name a line, none for the usual ones.
#define COMFYD_COUNT_ADDED                                            \
    " ON CONFLICT (job, endpoint, sequence) DO NOTHING RETURNING 1) " \
    "INSERT INTO counters (kind, tenant, state, slot, count) "        \
    "SELECT 1, '', 0, "
constexpr char kInsertDeliveries[] =
    "WITH added AS (INSERT INTO outbox (job, endpoint, sequence, tenant, event, state, attempts, "
    "created_at, next_attempt_at) SELECT n.job, '', n.sequence, n.tenant, n.type, 0, 0, n.at, n.at "
    "FROM unnest($1, $2, $3, $4, $5, $6, $7) AS n (job, sequence, at, event, is_usual, tenant, "
    "type) "
    "JOIN jobs j ON j.id = n.job AND j.xmin = pg_current_xact_id()::xid "
    "WHERE CASE WHEN j.webhook_events = '' THEN n.is_usual <> 0 "
    "ELSE n.event = ANY (string_to_array(j.webhook_events, E'\n')) END" COMFYD_COUNT_ADDED
    "$8, count(*) FROM added HAVING count(*) > 0" COMFYD_COUNT;
constexpr char kInsertFurtherDeliveries[] =
    "WITH added AS (INSERT INTO outbox (job, endpoint, sequence, tenant, event, state, attempts, "
    "created_at, next_attempt_at) SELECT n.job, n.endpoint, n.sequence, n.tenant, n.type, 0, 0, "
    "n.at, n.at FROM unnest($1, $2, $3, $4, $5, $6) AS n (job, endpoint, sequence, at, tenant, "
    "type) "
    "WHERE " COMFYD_IF_WRITTEN COMFYD_COUNT_ADDED
    "$7, count(*) FROM added HAVING count(*) > 0" COMFYD_COUNT;
constexpr char kInsertTargets[] =
    "INSERT INTO outbox_targets (job, endpoint, target) SELECT n.job, n.endpoint, n.target "
    "FROM unnest($1, $2, $3) AS n (job, endpoint, target) WHERE " COMFYD_IF_WRITTEN
    " ON CONFLICT (job, endpoint) DO NOTHING";
constexpr char kPutResults[] =
    "INSERT INTO job_results (job, failure, outputs, ui_outputs, usage) SELECT n.* "
    "FROM unnest($1, $2, $3, $4, $5) AS n (job, failure, outputs, ui_outputs, usage) "
    "WHERE " COMFYD_IF_WRITTEN
    " ON CONFLICT (job) DO UPDATE SET failure = excluded.failure, "
    "outputs = excluded.outputs, ui_outputs = excluded.ui_outputs, usage = excluded.usage";
constexpr char kDropResults[] =
    "DELETE FROM job_results r USING unnest($1) AS n (job) WHERE r.job = n.job "
    "AND " COMFYD_IF_WRITTEN;
constexpr char kInsertContents[] =
    "INSERT INTO contents (hash, bytes) SELECT DISTINCT ON (n.hash) n.hash, n.bytes "
    "FROM unnest($1, $2, $3) AS n (job, hash, bytes) WHERE " COMFYD_IF_WRITTEN
    " ORDER BY n.hash ON CONFLICT (hash) DO NOTHING";
// An output may be recorded already when the end of a job is committed again.
constexpr char kInsertOutputs[] =
    "INSERT INTO assets (job, id, tenant, hash, size_bytes, content_type, file_path, created_at, "
    "expires_at, crc32, store, retention, moves_at) SELECT n.* "
    "FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) "
    "AS n (job, id, tenant, hash, size_bytes, content_type, file_path, created_at, expires_at, "
    "crc32, store, retention, moves_at) "
    "WHERE " COMFYD_IF_WRITTEN " ON CONFLICT (id) DO NOTHING";
#define COMFYD_DURATION(column)             \
    "comfyd_sum_counts(CASE WHEN n." column \
    " IS NULL THEN '{}'::int8[] ELSE "      \
    "array_fill(0::int8, ARRAY[n." column "::int4]) || 1::int8 END)"
#define COMFYD_ADD(column) column " = rollups." column " + excluded." column ", "
constexpr char kAddStats[] =
    "INSERT INTO rollups (hour, tenant, workflow, worker, slot, completed, failed, cancelled, "
    "expired, retries, images, model_loads, gpu_ms, model_load_ms, inference_ms, cost_nano_usd, "
    "queued, ran) SELECT n.hour, n.tenant, n.workflow, n.worker, $19, sum(n.completed), "
    "sum(n.failed), sum(n.cancelled), sum(n.expired), sum(n.retries), sum(n.images), "
    "sum(n.model_loads), sum(n.gpu_ms), sum(n.model_load_ms), sum(n.inference_ms), "
    "sum(n.cost_nano_usd), " COMFYD_DURATION("queued") ", " COMFYD_DURATION("ran"
    ) " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "
      "$18) "
      "AS n (job, hour, tenant, workflow, worker, completed, failed, cancelled, expired, retries, "
      "images, model_loads, gpu_ms, model_load_ms, inference_ms, cost_nano_usd, queued, ran) "
      "WHERE " COMFYD_IF_WRITTEN
      " GROUP BY n.hour, n.tenant, n.workflow, n.worker "
      "ON CONFLICT (hour, tenant, workflow, worker, slot) DO UPDATE SET " COMFYD_ADD("completed")
          COMFYD_ADD("failed") COMFYD_ADD("cancelled") COMFYD_ADD("expired") COMFYD_ADD("retries")
              COMFYD_ADD("images") COMFYD_ADD("model_loads") COMFYD_ADD("gpu_ms")
                  COMFYD_ADD("model_load_ms") COMFYD_ADD("inference_ms") COMFYD_ADD("cost_nano_usd"
                  ) "queued = comfyd_add_counts(rollups.queued, excluded.queued), "
                    "ran = comfyd_add_counts(rollups.ran, excluded.ran)";

// Some each hour.
constexpr char kDropOldStats[] =
    "DELETE FROM rollups WHERE (hour, tenant, workflow, worker, slot) IN (SELECT hour, tenant, "
    "workflow, worker, slot FROM rollups WHERE hour < $1 ORDER BY hour LIMIT 1000 "
    "FOR UPDATE SKIP LOCKED)";

constexpr double kNanoPerUsd = 1e9;

// Of durations with one entry, or none.
std::optional<int> bucket_of(const jobs::Durations& durations) {
    const std::string text = durations.encode();
    int bucket = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), bucket);
    return read.ec == std::errc() ? std::optional(bucket) : std::nullopt;
}

const std::vector<Oid> kJobColumns{kUuid,    kText,    kText,    kInteger, kInteger, kInteger,
                                   kInteger, kInteger, kInteger, kInteger, kInteger, kInteger,
                                   kInteger, kInteger, kInteger, kInteger, kInteger, kInteger,
                                   kText,    kText,    kText,    kText,    kText,    kUuid,
                                   kText,    kInteger, kText,    kText};
const std::vector<Oid> kChangeColumns{
    kUuid,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kText,
    kUuid,
    kText,
    kInteger,
    kText
};
const std::vector<Oid> kOutputColumns{
    kUuid,
    kUuid,
    kText,
    kText,
    kInteger,
    kText,
    kText,
    kInteger,
    kInteger,
    kInteger,
    kText,
    kInteger,
    kInteger
};
const std::vector<Oid> kStatsColumns{
    kUuid,
    kInteger,
    kText,
    kText,
    kText,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger,
    kInteger
};

}  // namespace

Statement fence(const jobs::Term& term) {
    return {kFence, {term.domain, term.epoch, term.node}};
}

Batch::Batch(Circumstances circumstances, const std::vector<const Batch*>& before)
    : at(std::move(circumstances)),
      new_jobs(kJobColumns),
      changes(kChangeColumns),
      outputs(kOutputColumns),
      stats(kStatsColumns),
      before_(before) {}

bool Batch::touch(const JobId& job) {
    const bool is_under_way = std::any_of(before_.begin(), before_.end(), [&](const Batch* batch) {
        return batch->touched_.contains(job);
    });
    return !is_under_way && touched_.insert(job).second;
}

std::size_t Batch::add(Statement statement) {
    own_.push_back(std::move(statement));
    return own_.size() - 1;
}

void Batch::add_event(const jobs::Event& event, const std::optional<std::string>& data) {
    events.add(
        event.job,
        event.sequence,
        static_cast<int>(event.type),
        event.at,
        static_cast<int>(event.state),
        data
    );
}

void Batch::add_delivery(const jobs::Job& job, const jobs::Event& event) {
    const std::string name = jobs::webhook_event_name(event.type);
    deliveries.add(
        job.id,
        event.sequence,
        event.at,
        name,
        jobs::Webhook().wants(name),
        job.tenant,
        static_cast<int>(event.type)
    );
}

void Batch::add_deliveries(
    const jobs::Job& job, const jobs::Event& event, const std::vector<ToldTo>& told
) {
    for (const ToldTo& one : told) {
        targets.add(job.id, one.endpoint, one.target);
        further_deliveries.add(
            job.id, one.endpoint, event.sequence, event.at, job.tenant, static_cast<int>(event.type)
        );
    }
}

void Batch::add_outputs(const jobs::Job& job, Time now) {
    jobs::each_file(job.outputs, [&](const jobs::Output& output) {
        output_hashes.add(output.hash);
        if (output.bytes) {
            contents.add(job.id, output.hash, *output.bytes);
        }
        outputs.add(
            job.id,
            output.asset,
            job.tenant,
            output.hash,
            output.size_bytes,
            output.content_type,
            output.name,
            now,
            output.expires_at,
            output.crc32,
            stored_store(output.store),
            stored_retention(assets::parse_retention_class(output.retention)),
            output.moves_at
        );
        blob_needs.add(
            {output.asset,
             output.hash,
             output.size_bytes,
             output.store,
             output.generation,
             output.bytes != nullptr},
            now
        );
    });
}

void Batch::add_stats(const JobId& job, jobs::StatsEntry entry) {
    begins_hour_ = at.names->bound(entry.key) || begins_hour_;
    const jobs::Totals& totals = entry.totals;
    stats.add(
        job,
        entry.key.hour,
        entry.key.tenant,
        entry.key.workflow,
        entry.key.worker,
        totals.completed,
        totals.failed,
        totals.cancelled,
        totals.expired,
        totals.retries,
        totals.images,
        totals.model_loads,
        totals.gpu,
        totals.model_load,
        totals.inference,
        std::llround(totals.cost_usd * kNanoPerUsd),
        bucket_of(totals.queued),
        bucket_of(totals.ran)
    );
}

Statements Batch::statements() const {
    Statements all;
    const auto add_rows = [&all](const Table& table, const char* sql, std::vector<Value> behind) {
        if (!table.empty()) {
            all.push_back(table.statement(sql, std::move(behind)));
        }
    };
    const std::uint64_t epoch = at.term ? at.term->epoch : 0;
    const Time old = at.now - kIdempotencyKeyLife;
    if (at.term) {
        all.push_back(fence(*at.term));
    }
    add_rows(reused_hashes, kHoldAssets, {});
    add_rows(output_hashes, kHoldContents, {});
    add_rows(keys, kInsertKeys, {at.now, old});
    add_rows(new_jobs, kInsertJobs, {epoch, at.slot});
    add_rows(changes, kUpdateJobs, {epoch, at.slot});
    add_rows(specs, kInsertSpecs, {});
    add_rows(job_assets, kInsertJobAssets, {});
    add_rows(secrets, kInsertSecrets, {});
    add_rows(ended, kDropSecrets, {});
    add_rows(events, kInsertEvents, {});
    add_rows(targets, kInsertTargets, {});
    add_rows(deliveries, kInsertDeliveries, {at.slot});
    add_rows(further_deliveries, kInsertFurtherDeliveries, {at.slot});
    add_rows(results, kPutResults, {});
    add_rows(no_results, kDropResults, {});
    add_rows(contents, kInsertContents, {});
    add_rows(outputs, kInsertOutputs, {});
    for (Statement& statement : blob_needs.statements(at.now)) {
        all.push_back(std::move(statement));
    }
    add_rows(stats, kAddStats, {at.slot});
    if (begins_hour_) {
        all.push_back({kDropOldStats, {jobs::hour_of(at.now - jobs::kStatsLife)}});
    }
    if (!keys.empty()) {
        all.push_back({kDropOldKeys, {old, 2 * keys.size()}});
    }
    all.insert(all.end(), own_.begin(), own_.end());
    return all;
}

void Batch::read(std::vector<Rows> answers) {
    std::size_t place = (at.term ? 1 : 0) + (reused_hashes.empty() ? 0 : 1) +
                        (output_hashes.empty() ? 0 : 1) + (keys.empty() ? 0 : 1);
    const auto take_ids = [&](const Table& table, std::unordered_set<JobId>& into) {
        if (!table.empty()) {
            const Rows& rows = answers.at(place++);
            for (int i = 0; i < rows.size(); ++i) {
                into.insert(JobId{rows[i].uuid(0)});
            }
        }
    };
    take_ids(new_jobs, made);
    take_ids(changes, changed);
    const auto own = answers.end() - static_cast<std::ptrdiff_t>(own_.size());
    own_answers_.assign(std::make_move_iterator(own), std::make_move_iterator(answers.end()));
}

}  // namespace comfyd::ledger::postgres
