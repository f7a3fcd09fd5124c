#include "ledger/postgres/job_queries.hpp"

#include <algorithm>
#include <utility>

#include "jobs/profile_text.hpp"
#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kFindJob[] =
    "SELECT " COMFYD_PG_JOB_COLUMNS " FROM jobs j" COMFYD_PG_JOB_JOINS "WHERE j.id = $1";
constexpr char kFindReusable[] =
    "SELECT " COMFYD_PG_JOB_COLUMNS " FROM jobs j" COMFYD_PG_JOB_JOINS
    "WHERE j.tenant = $1 AND j.reuse_key = $2 AND j.outcome = 3 AND j.reuse_key IS NOT NULL AND "
    "j.reused_from IS NULL ORDER BY j.id DESC LIMIT 1";
constexpr char kFindStamp[] =
    "SELECT j.tenant, j.revision, CASE WHEN j.webhook_events IS NULL THEN false ELSE "
    "(SELECT coalesce(bool_and(o.state = 2), false) FROM outbox o "
    "WHERE o.job = j.id AND o.endpoint = '') END FROM jobs j "
    "WHERE j.id = $1 AND j.outcome IS NOT NULL";
constexpr char kFindKey[] =
    "SELECT " COMFYD_PG_JOB_COLUMNS
    ", k.request_hash FROM idempotency_keys k JOIN jobs j ON j.id = k.job" COMFYD_PG_JOB_JOINS
    "WHERE k.tenant = $1 AND k.key = $2 AND k.created_at > $3";
constexpr char kFindSpec[] =
    "SELECT j.tenant, j.dialect, j.workflow_id, j.reuse_key, j.domain, s.requirement, s.metadata, "
    "s.dialect_data, s.spec, s.extra_data, s.workflow, s.profile, t.target FROM jobs j "
    "JOIN job_specs s ON s.job = j.id "
    "LEFT JOIN outbox_targets t ON t.job = j.id AND t.endpoint = '' WHERE j.id = $1";
constexpr char kFindQueuedEvent[] =
    "SELECT j.created_at, s.queued_sequence, s.queued_data FROM jobs j "
    "JOIN job_specs s ON s.job = j.id WHERE j.id = $1";
constexpr char kFindEvents[] =
    "SELECT sequence, type, at, state, data FROM job_events WHERE job = $1 AND sequence > $2 "
    "ORDER BY sequence";
constexpr char kCountTenant[] =
    "SELECT state, sum(count)::int8 FROM counters WHERE kind = 0 AND tenant = $1 GROUP BY state";
constexpr char kCountAll[] =
    "SELECT state, sum(count)::int8 FROM counters WHERE kind = 0 GROUP BY state";
constexpr char kFindUnfinished[] =
    "SELECT " COMFYD_PG_JOB_COLUMNS ", s.requirement, s.profile FROM jobs j" COMFYD_PG_JOB_JOINS
    "WHERE j.outcome IS NULL AND j.id > $1 ORDER BY j.id LIMIT $2";

Result<jobs::Event> read_event(const Row& row, const JobId& job) {
    jobs::Event event;
    event.job = job;
    event.sequence = static_cast<std::uint64_t>(row.integer(0));
    event.type = static_cast<jobs::EventType>(row.integer(1));
    event.at = row.time(2);
    event.state = static_cast<jobs::State>(row.integer(3));
    auto data = decode_object(row.text(4));
    if (!data) {
        return fail(std::move(data.error()));
    }
    event.data = std::move(*data);
    return event;
}

}  // namespace

Statement find_job(const JobId& id) {
    return {kFindJob, {id}};
}

Result<std::optional<jobs::Job>> read_found_job(const Rows& rows) {
    return rows.first(read_job<Row>);
}

Statement find_stamp(const JobId& id) {
    return {kFindStamp, {id}};
}

Result<std::optional<jobs::Stamp>> read_stamp(const Rows& rows) {
    return rows.first([](const Row& row) -> Result<jobs::Stamp> {
        return jobs::Stamp{row.string(0), static_cast<int>(row.integer(1)), row.integer(2) != 0};
    });
}

Statement find_key(const std::string& tenant, const std::string& key, Time now) {
    return {kFindKey, {tenant, key, now - kIdempotencyKeyLife}};
}

Result<jobs::Accepted> read_key_holder(const Rows& rows) {
    jobs::Accepted accepted;
    if (rows.empty()) {
        return accepted;
    }
    auto job = read_job(rows[0]);
    if (!job) {
        return fail(std::move(job.error()));
    }
    accepted.existing = std::move(*job);
    accepted.existing_request_hash = rows[0].text(kJobColumnCount);
    return accepted;
}

Statement find_reusable(const std::string& tenant, const std::string& reuse_key) {
    return {kFindReusable, {tenant, reuse_key}};
}

Statement find_spec(const JobId& id) {
    return {kFindSpec, {id}};
}

Result<std::optional<jobs::Spec>> read_spec(
    const Rows& rows, const JobId& id, const Telling& telling
) {
    if (rows.empty()) {
        return std::nullopt;
    }
    const Row row = rows[0];
    jobs::Spec spec;
    spec.tenant = row.text(0);
    spec.dialect = row.text(1);
    spec.workflow_id = row.text(2);
    spec.reuse_key = row.text(3);
    spec.domain = row.text(4);
    spec.requirement = Requirement::decode(row.string(5));
    spec.workflow = row.text(10);
    if (const auto profile = row.text(11); !profile.empty()) {
        spec.profile = jobs::decode_profile(profile, spec.requirement);
    }
    for (const auto& [column, target] :
         {std::pair(6, &spec.metadata),
          std::pair(7, &spec.dialect_data),
          std::pair(9, &spec.extra_data)}) {
        auto object = decode_object(row.text(column));
        if (!object) {
            return fail(std::move(object.error()));
        }
        *target = std::move(*object);
    }
    if (auto decoded = decode_spec(row.text(8), spec); !decoded) {
        return fail(std::move(decoded.error()));
    }
    // One that was sealed with another secret is left out: the job runs without.
    const auto webhook = row.is_null(12)
                             ? std::nullopt
                             : telling.read_target(row.bytes(12), id, notify::kOwnWebhook);
    if (auto decoded = decode_webhook(webhook, spec); !decoded) {
        return fail(std::move(decoded.error()));
    }
    return spec;
}

Statements find_events(const JobId& id, std::uint64_t after) {
    return {{kFindQueuedEvent, {id}}, {kFindEvents, {id, after}}};
}

Result<std::vector<jobs::Event>> read_events(
    const std::vector<Rows>& answers, const JobId& id, std::uint64_t after
) {
    std::vector<jobs::Event> events;
    if (answers.at(0).empty()) {
        return events;
    }
    const Row first = answers.at(0)[0];
    jobs::Event queued;
    queued.job = id;
    queued.at = first.time(0);
    queued.sequence = static_cast<std::uint64_t>(first.integer(1));
    auto data = decode_object(first.text(2));
    if (!data) {
        return fail(std::move(data.error()));
    }
    queued.data = std::move(*data);
    if (queued.sequence > after) {
        events.push_back(std::move(queued));
    }
    return answers.at(1).all(
        [&id](const Row& row) { return read_event(row, id); }, std::move(events)
    );
}

Statement count_jobs(const std::optional<std::string>& tenant) {
    return tenant ? Statement{kCountTenant, {*tenant}} : Statement{kCountAll};
}

jobs::StateCounts read_counts(const Rows& rows) {
    jobs::StateCounts counts;
    for (int i = 0; i < rows.size(); ++i) {
        const auto state = static_cast<std::size_t>(rows[i].integer(0));
        if (state < std::size(counts.by_state)) {
            counts.by_state[state] = static_cast<std::uint64_t>(rows[i].integer(1));
        }
    }
    return counts;
}

Statement find_unfinished(const std::optional<JobId>& after, int limit) {
    return {kFindUnfinished, {after.value_or(JobId{}), std::clamp(limit, 1, kUnfinishedLimitMax)}};
}

Result<jobs::Unfinished> read_unfinished(const Row& row) {
    auto job = read_job(row);
    if (!job) {
        return fail(std::move(job.error()));
    }
    jobs::Unfinished entry{std::move(*job), Requirement::decode(row.string(kJobColumnCount))};
    if (const auto profile = row.text(kJobColumnCount + 1); !profile.empty()) {
        entry.profile = jobs::decode_profile(profile, entry.requirement);
    }
    return entry;
}

}  // namespace comfyd::ledger::postgres
