#include "ledger/sqlite/job_writes.hpp"

#include <utility>

#include "ledger/codec.hpp"
#include "ledger/sqlite/asset_store.hpp"
#include "ledger/sqlite/job_queries.hpp"
#include "ledger/sqlite/outbox_store.hpp"
#include "ledger/sqlite/purge.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kInsertKey[] =
    "INSERT OR REPLACE INTO idempotency_keys (tenant, key, job, request_hash, created_at) "
    "VALUES (?, ?, ?, ?, ?)";
// A few for each new one keeps the table from growing and no transaction long.
constexpr char kDropOldKeys[] =
    "DELETE FROM idempotency_keys WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency_keys "
    "WHERE created_at <= ? ORDER BY created_at LIMIT 4)";
constexpr char kInsertJob[] =
    "INSERT INTO jobs (id, number, tenant, state, revision, sequence, priority, created_at, "
    "started_at, finished_at, not_before, deadline, timeout_ms, attempt, max_attempts, "
    "cancel_requested, node_count, result, dialect, worker, workflow_id, webhook_events, "
    "reuse_key) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?)";
constexpr char kInsertDetails[] =
    "INSERT INTO job_details (number, queued_sequence, queued_data, requirement, metadata, "
    "dialect_data, profile) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr char kInsertSpec[] =
    "INSERT INTO job_specs (number, spec, extra_data, workflow) VALUES (?, ?, ?, ?)";

constexpr char kFindForChange[] =
    "SELECT number, tenant, state, revision, sequence, webhook_events, result IS NOT NULL "
    "FROM jobs WHERE id = ?";
constexpr char kUpdateJob[] =
    "UPDATE jobs SET state = ?, revision = ?, sequence = ?, priority = ?, started_at = ?, "
    "finished_at = ?, not_before = ?, deadline = ?, timeout_ms = ?, attempt = ?, max_attempts = ?, "
    "cancel_requested = ?, result = ?, worker = ?, reused_from = ?, shared_prompt = ?, "
    "shared_place = ? WHERE id = ?";
constexpr char kPutResult[] =
    "INSERT OR REPLACE INTO job_results (number, failure, outputs, ui_outputs, usage) "
    "VALUES (?, ?, ?, ?, ?)";
constexpr char kDropResult[] = "DELETE FROM job_results WHERE number = ?";
constexpr char kInsertEvent[] =
    "INSERT OR REPLACE INTO job_events (number, sequence, type, at, state, data) "
    "VALUES (?, ?, ?, ?, ?, ?)";

constexpr std::size_t kRowOverheadBytes = 512;

Error stale(const jobs::Job& job, std::int64_t stored_revision) {
    return Error(
        Code::conflict,
        "job " + job.id.to_string() + " was changed meanwhile; read it again and decide anew",
        {{"stored_revision", stored_revision}, {"revision", job.revision}}
    );
}

Result<> insert_event(
    Session& session,
    std::int64_t number,
    const jobs::Event& event,
    const std::optional<std::string>& data
) {
    return Query(session.db, kInsertEvent)
        .bind(
            number,
            event.sequence,
            static_cast<int>(event.type),
            event.at,
            static_cast<int>(event.state),
            data
        )
        .run();
}

// The outputs that a job is answered with may have gone since they were found.
Result<> check_reused(Session& session, const jobs::Job& job) {
    if (!job.reused_from) {
        return {};
    }
    for (const jobs::Output* output : jobs::files_of(job.outputs)) {
        const auto kept = is_content_known(session.db, output->hash);
        if (!kept) {
            return fail(kept.error());
        }
        if (!*kept) {
            return fail(
                Code::output_unavailable,
                "output '" + output->name + "' of job " + job.reused_from->to_string() +
                    " is no longer stored"
            );
        }
    }
    return {};
}

// Assets are held for as long as a job may run.
Result<> change_uses(Session& session, const JobId& job, int old_state, jobs::State state) {
    const bool had_ended = jobs::is_terminal(static_cast<jobs::State>(old_state));
    if (had_ended == jobs::is_terminal(state)) {
        return {};
    }
    return had_ended ? add_uses_again(session.db, job) : drop_uses(session.db, job);
}

}  // namespace

AcceptJob::AcceptJob(jobs::NewJob job, const notify::Routing* routing)
    : new_(std::move(job)),
      texts_(new_),
      told_(told_to(routing, new_.change.job, new_.change.event)) {
    if (new_.warning) {
        warned_ = told_to(routing, new_.change.job, *new_.warning);
    }
    if (new_.then) {
        then_told_ = told_to(routing, new_.then->job, new_.then->event);
    }
}

std::size_t AcceptJob::bytes() const {
    return kRowOverheadBytes + new_.spec.workflow.size() + new_.spec.requirement.encoded().size() +
           texts_.bytes();
}

Result<jobs::Accepted> AcceptJob::operator()(Session& session) {
    const jobs::Job& job = new_.change.job;
    if (!new_.spec.idempotency_key.empty()) {
        auto earlier =
            find_by_key(session.db, new_.spec.tenant, new_.spec.idempotency_key, session.now);
        if (!earlier) {
            return fail(std::move(earlier.error()));
        }
        if (*earlier) {
            return std::move(**earlier);
        }
    }
    if (new_.then) {
        if (auto kept = check_reused(session, new_.then->job); !kept) {
            return fail(std::move(kept.error()));
        }
    }
    const std::int64_t number = session.next_number;
    // First, because it is the only statement that another job with this id can refuse.
    if (auto done = insert_job(session, number); !done) {
        return fail(std::move(done.error()));
    }
    ++session.next_number;
    if (auto done = insert_payload(session, number); !done) {
        return fail(std::move(done.error()));
    }
    if (!new_.spec.idempotency_key.empty()) {
        if (auto done = insert_key(session); !done) {
            return fail(std::move(done.error()));
        }
    }
    if (auto done = add_uses(session.db, job.id, texts_.used_assets); !done) {
        return fail(std::move(done.error()));
    }
    if (auto done = tell(session); !done) {
        return fail(std::move(done.error()));
    }
    if (new_.warning) {
        if (auto done = insert_warning(session, number); !done) {
            return fail(std::move(done.error()));
        }
    }
    session.counters.add(CounterChanges::Kind::jobs, job.tenant, static_cast<int>(job.state), 1);
    if (new_.then) {
        if (auto done = CommitChange(*new_.then, then_told_)(session); !done) {
            return fail(std::move(done.error()));
        }
    }
    jobs::Accepted accepted;
    accepted.created = true;
    return accepted;
}

Result<> AcceptJob::insert_job(Session& session, std::int64_t number) const {
    const jobs::Job& job = new_.change.job;
    return Query(session.db, kInsertJob)
        .bind(
            job.id,
            number,
            job.tenant,
            static_cast<int>(job.state),
            job.revision,
            job.sequence,
            job.priority,
            job.created_at,
            job.started_at,
            job.finished_at,
            job.not_before,
            job.deadline,
            job.timeout,
            job.attempt,
            job.max_attempts,
            job.cancel_requested,
            job.node_count,
            job.dialect,
            job.worker,
            job.workflow_id,
            texts_.webhook_events,
            job.reuse_key.empty() ? std::nullopt : std::optional(job.reuse_key)
        )
        .run();
}

Result<> AcceptJob::insert_payload(Session& session, std::int64_t number) const {
    auto details = Query(session.db, kInsertDetails)
                       .bind(
                           number,
                           new_.change.event.sequence,
                           texts_.queued_data,
                           new_.spec.requirement.encoded(),
                           texts_.metadata,
                           texts_.dialect_data,
                           texts_.profile
                       )
                       .run();
    if (!details) {
        return details;
    }
    return Query(session.db, kInsertSpec)
        .bind(number, texts_.spec, texts_.extra_data, new_.spec.workflow)
        .run();
}

Result<> AcceptJob::tell(Session& session) const {
    const jobs::Job& job = new_.change.job;
    if (texts_.webhook) {
        if (auto done = add_target(session, job.id, notify::kOwnWebhook, *texts_.webhook); !done) {
            return done;
        }
    }
    if (texts_.announces) {
        auto done = add_delivery(session, job, new_.change.event, notify::kOwnWebhook);
        if (!done) {
            return done;
        }
    }
    return add_deliveries(session, job, new_.change.event, told_);
}

Result<> AcceptJob::insert_warning(Session& session, std::int64_t number) const {
    const jobs::Event& event = *new_.warning;
    if (auto done = insert_event(session, number, event, encode(event.data)); !done) {
        return done;
    }
    const auto& webhook = new_.spec.webhook;
    if (webhook && webhook->wants(jobs::webhook_event_name(event.type))) {
        auto done = add_delivery(session, new_.change.job, event, notify::kOwnWebhook);
        if (!done) {
            return done;
        }
    }
    return add_deliveries(session, new_.change.job, event, warned_);
}

Result<> AcceptJob::insert_key(Session& session) const {
    auto inserted = Query(session.db, kInsertKey)
                        .bind(
                            new_.spec.tenant,
                            new_.spec.idempotency_key,
                            new_.change.job.id,
                            new_.spec.request_hash,
                            session.now
                        )
                        .run();
    if (!inserted) {
        return inserted;
    }
    return Query(session.db, kDropOldKeys).bind(session.now - kIdempotencyKeyLife).run();
}

CommitChange::CommitChange(jobs::Change change, std::vector<ToldTo> told)
    : change_(std::move(change)), texts_(change_), told_(std::move(told)) {}

std::size_t CommitChange::bytes() const {
    return kRowOverheadBytes + texts_.bytes();
}

Result<> CommitChange::operator()(Session& session) {
    const jobs::Job& job = change_.job;
    const jobs::Event& event = change_.event;
    std::int64_t number = 0;
    std::string tenant;
    int old_state = 0;
    bool had_result = false;
    bool wanted = false;
    {
        Query query(session.db, kFindForChange);
        const auto row = query.bind(job.id).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return fail(Code::not_found, "there is no job " + job.id.to_string());
        }
        const auto stored_sequence = static_cast<std::uint64_t>(query.integer(4));
        if (query.integer(3) != job.revision - 1 || event.sequence <= stored_sequence) {
            return fail(stale(job, query.integer(3)));
        }
        number = query.integer(0);
        tenant = query.text(1);
        old_state = static_cast<int>(query.integer(2));
        wanted = event.is_durable() && !query.is_null(5) && wants_event(query.text(5), event.type);
        had_result = query.integer(6) != 0;
    }
    const bool has_completed = event.type == jobs::EventType::completed;
    if (auto kept = has_completed ? check_reused(session, job) : Result<>(); !kept) {
        return kept;
    }
    if (auto done = update_job(session, number); !done) {
        return done;
    }
    if (auto done = change_uses(session, job.id, old_state, job.state); !done) {
        return done;
    }
    const bool is_revived =
        jobs::is_terminal(static_cast<jobs::State>(old_state)) && !jobs::is_terminal(job.state);
    if (is_revived && had_result) {
        if (auto done = drop_outputs(session, number); !done) {
            return done;
        }
    }
    if (auto done = write_result(session, number, had_result); !done) {
        return done;
    }
    if (event.is_durable()) {
        if (auto done = insert_event(session, number, event, texts_.event_data); !done) {
            return done;
        }
    }
    if (wanted) {
        if (auto done = add_delivery(session, job, event, notify::kOwnWebhook); !done) {
            return done;
        }
    }
    if (auto done = add_deliveries(session, job, event, told_); !done) {
        return done;
    }
    if (jobs::is_terminal(job.state)) {
        for (const jobs::Output* output : jobs::files_of(job.outputs)) {
            if (auto done = add_output(session, job, *output, event.at); !done) {
                return done;
            }
        }
    }
    session.counters.add(CounterChanges::Kind::jobs, tenant, old_state, -1);
    session.counters.add(CounterChanges::Kind::jobs, tenant, static_cast<int>(job.state), 1);
    if (auto entry = jobs::stats_of(change_)) {
        session.rollups.add(std::move(*entry));
    }
    return {};
}

Result<> CommitChange::update_job(Session& session, std::int64_t number) const {
    const jobs::Job& job = change_.job;
    const auto result = texts_.any() ? std::optional(number) : std::nullopt;
    return Query(session.db, kUpdateJob)
        .bind(
            static_cast<int>(job.state),
            job.revision,
            job.sequence,
            job.priority,
            job.started_at,
            job.finished_at,
            job.not_before,
            job.deadline,
            job.timeout,
            job.attempt,
            job.max_attempts,
            job.cancel_requested,
            result,
            job.worker,
            job.reused_from,
            job.shared ? std::optional(job.shared->prompt.to_string()) : std::nullopt,
            job.shared ? std::optional(job.shared->place) : std::nullopt,
            job.id
        )
        .run();
}

Result<> CommitChange::write_result(Session& session, std::int64_t number, bool had_result) const {
    if (texts_.any()) {
        return Query(session.db, kPutResult)
            .bind(number, texts_.failure, texts_.outputs, texts_.ui_outputs, texts_.usage)
            .run();
    }
    if (had_result) {
        return Query(session.db, kDropResult).bind(number).run();
    }
    return {};
}

}  // namespace comfyd::ledger::sqlite
