#include "ledger/sqlite/job_queries.hpp"

#include <algorithm>
#include <utility>

#include "jobs/profile_text.hpp"
#include "ledger/codec.hpp"
#include "ledger/sqlite/job_columns.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFindJob[] =
    "SELECT " COMFYD_JOB_COLUMNS " FROM jobs j" COMFYD_JOB_JOINS "WHERE j.id = ?";
constexpr char kFindReusable[] =
    "SELECT " COMFYD_JOB_COLUMNS " FROM jobs j INDEXED BY jobs_reusable" COMFYD_JOB_JOINS
    "WHERE j.tenant = ? AND j.reuse_key = ? AND j.state = 3 AND j.reuse_key IS NOT NULL AND "
    "j.reused_from IS NULL ORDER BY j.id DESC LIMIT 1";
constexpr char kFindStamp[] =
    "SELECT j.tenant, j.revision, CASE WHEN j.webhook_events IS NULL THEN 0 ELSE "
    "(SELECT coalesce(min(o.state = 2), 0) FROM outbox o WHERE o.job = j.id AND o.endpoint = '') "
    "END FROM jobs j WHERE j.id = ? AND j.state >= 3";
constexpr char kFindKey[] =
    "SELECT job, request_hash, created_at FROM idempotency_keys WHERE tenant = ? AND key = ?";
constexpr char kFindSpec[] =
    "SELECT j.tenant, j.dialect, j.workflow_id, d.requirement, d.metadata, d.dialect_data, s.spec, "
    "s.extra_data, s.workflow, d.profile, j.reuse_key, t.target FROM jobs j "
    "CROSS JOIN job_details d ON d.number = j.number "
    "CROSS JOIN job_specs s ON s.number = j.number "
    "LEFT JOIN outbox_targets t ON t.job = j.id AND t.endpoint = '' WHERE j.id = ?";
constexpr char kFindQueuedEvent[] =
    "SELECT j.number, j.created_at, d.queued_sequence, d.queued_data FROM jobs j "
    "CROSS JOIN job_details d ON d.number = j.number WHERE j.id = ?";
constexpr char kFindEvents[] =
    "SELECT sequence, type, at, state, data FROM job_events WHERE number = ? AND sequence > ? "
    "ORDER BY sequence";
constexpr char kCountTenant[] = "SELECT state, count FROM counters WHERE kind = ? AND tenant = ?";
constexpr char kCountAll[] = "SELECT state, sum(count) FROM counters WHERE kind = ? GROUP BY state";
constexpr char kFindUnfinished[] =
    "SELECT " COMFYD_JOB_COLUMNS
    ", d.requirement, d.profile FROM jobs j INDEXED BY jobs_unfinished" COMFYD_JOB_JOINS
    "WHERE j.state < 3 AND j.id > ? ORDER BY j.id LIMIT ?";

Result<jobs::Event> read_event(const Query& row, const JobId& job) {
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

Result<std::optional<jobs::Job>> find_job(Database& db, const JobId& id) {
    Query query(db, kFindJob);
    query.bind(id);
    return first_row(query, read_job<Query>);
}

Result<std::optional<jobs::Job>> find_reusable_job(
    Database& db, const std::string& tenant, const std::string& reuse_key
) {
    Query query(db, kFindReusable);
    query.bind(tenant, reuse_key);
    return first_row(query, read_job<Query>);
}

Result<std::optional<jobs::Stamp>> find_stamp(Database& db, const JobId& id) {
    Query query(db, kFindStamp);
    query.bind(id);
    return first_row(query, [](const Query& row) -> Result<jobs::Stamp> {
        return jobs::Stamp{row.string(0), static_cast<int>(row.integer(1)), row.integer(2) != 0};
    });
}

Result<std::optional<jobs::Accepted>> find_by_key(
    Database& db, const std::string& tenant, const std::string& key, Time now
) {
    JobId id;
    jobs::Accepted accepted;
    {
        Query query(db, kFindKey);
        const auto row = query.bind(tenant, key).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row || query.time(2) + kIdempotencyKeyLife <= now) {
            return std::nullopt;
        }
        id.uuid = query.uuid(0);
        accepted.existing_request_hash = query.text(1);
    }
    auto existing = find_job(db, id);
    if (!existing) {
        return fail(std::move(existing.error()));
    }
    if (!*existing) {
        return std::nullopt;
    }
    accepted.existing = std::move(*existing);
    return accepted;
}

Result<std::optional<jobs::Spec>> find_spec(Database& db, const JobId& id) {
    Query query(db, kFindSpec);
    const auto row = query.bind(id).next();
    if (!row) {
        return fail(row.error());
    }
    if (!*row) {
        return std::nullopt;
    }
    jobs::Spec spec;
    spec.tenant = query.text(0);
    spec.dialect = query.text(1);
    spec.workflow_id = query.text(2);
    spec.requirement = Requirement::decode(query.string(3));
    spec.workflow = query.text(8);
    spec.reuse_key = query.text(10);
    if (const auto profile = query.text(9); !profile.empty()) {
        spec.profile = jobs::decode_profile(profile, spec.requirement);
    }
    for (const auto& [column, target] :
         {std::pair(4, &spec.metadata),
          std::pair(5, &spec.dialect_data),
          std::pair(7, &spec.extra_data)}) {
        auto object = decode_object(query.text(column));
        if (!object) {
            return fail(std::move(object.error()));
        }
        *target = std::move(*object);
    }
    const auto webhook = query.is_null(11) ? std::nullopt : std::optional(query.string(11));
    if (auto decoded = decode_webhook(webhook, spec); !decoded) {
        return fail(std::move(decoded.error()));
    }
    if (auto decoded = decode_spec(query.text(6), spec); !decoded) {
        return fail(std::move(decoded.error()));
    }
    return spec;
}

Result<std::vector<jobs::Event>> find_events(Database& db, const JobId& id, std::uint64_t after) {
    const Snapshot snapshot(db);
    std::vector<jobs::Event> events;
    std::int64_t number = 0;
    {
        Query query(db, kFindQueuedEvent);
        const auto row = query.bind(id).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return events;
        }
        number = query.integer(0);
        jobs::Event queued;
        queued.job = id;
        queued.at = query.time(1);
        queued.sequence = static_cast<std::uint64_t>(query.integer(2));
        auto data = decode_object(query.text(3));
        if (!data) {
            return fail(std::move(data.error()));
        }
        queued.data = std::move(*data);
        if (queued.sequence > after) {
            events.push_back(std::move(queued));
        }
    }
    Query query(db, kFindEvents);
    query.bind(number, after);
    return all_rows(
        query, [&id](const Query& row) { return read_event(row, id); }, std::move(events)
    );
}

Result<jobs::StateCounts> count_jobs(Database& db, const std::optional<std::string>& tenant) {
    constexpr int kKind = static_cast<int>(CounterChanges::Kind::jobs);
    jobs::StateCounts counts;
    Query query(db, tenant ? kCountTenant : kCountAll);
    if (tenant) {
        query.bind(kKind, *tenant);
    } else {
        query.bind(kKind);
    }
    auto read = each_row(query, [&] {
        const auto state = static_cast<std::size_t>(query.integer(0));
        if (state < std::size(counts.by_state)) {
            counts.by_state[state] = static_cast<std::uint64_t>(query.integer(1));
        }
    });
    return read ? Result<jobs::StateCounts>(counts) : fail(std::move(read.error()));
}

Result<std::vector<jobs::Unfinished>> find_unfinished(
    Database& db, const std::optional<JobId>& after, int limit
) {
    const JobId start = after.value_or(JobId{});
    Query query(db, kFindUnfinished);
    query.bind(start, std::clamp(limit, 1, kUnfinishedLimitMax));
    return all_rows(query, [](const Query& row) -> Result<jobs::Unfinished> {
        auto job = read_job(row);
        if (!job) {
            return fail(std::move(job.error()));
        }
        jobs::Unfinished entry{std::move(*job), Requirement::decode(row.string(kJobColumnCount))};
        if (const auto profile = row.text(kJobColumnCount + 1); !profile.empty()) {
            entry.profile = jobs::decode_profile(profile, entry.requirement);
        }
        return entry;
    });
}

}  // namespace comfyd::ledger::sqlite
