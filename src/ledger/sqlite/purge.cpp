#include "ledger/sqlite/purge.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"
#include "ledger/sqlite/asset_store.hpp"
#include "ledger/sqlite/asset_uses.hpp"
#include "ledger/sqlite/job_queries.hpp"
#include "ledger/sqlite/schema.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFindOne[] = "SELECT " COMFYD_ENDED_COLUMNS " FROM jobs WHERE id = ?";
constexpr char kHasDelivery[] = "SELECT EXISTS (SELECT 1 FROM outbox WHERE job = ? AND state < 2)";
constexpr char kCountDead[] = "SELECT count(*) FROM outbox WHERE job = ? AND state = 3";
constexpr char kFindOutputs[] = "SELECT outputs FROM job_results WHERE number = ?";
constexpr char kFindSpecText[] = "SELECT spec FROM job_specs WHERE number = ?";

// An output that is kept longer than its job goes by itself.
constexpr char kOutlive[] = "UPDATE assets SET job = NULL WHERE id = ?";
constexpr char kDropKey[] = "DELETE FROM idempotency_keys WHERE tenant = ? AND key = ? AND job = ?";
constexpr char kDropOldKeys[] =
    "DELETE FROM idempotency_keys WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency_keys "
    "WHERE created_at <= ? ORDER BY created_at LIMIT ?)";
constexpr char kDropEvents[] = "DELETE FROM job_events WHERE number = ?";
constexpr char kDropResult[] = "DELETE FROM job_results WHERE number = ?";
constexpr char kDropSpec[] = "DELETE FROM job_specs WHERE number = ?";
constexpr char kDropDetails[] = "DELETE FROM job_details WHERE number = ?";
constexpr char kDropDeliveries[] = "DELETE FROM outbox WHERE job = ?";
constexpr char kDropTargets[] = "DELETE FROM outbox_targets WHERE job = ?";
constexpr char kDropJob[] = "DELETE FROM jobs WHERE id = ?";

constexpr char kFreePages[] = "PRAGMA freelist_count";
constexpr char kAllPages[] = "PRAGMA page_count";
constexpr char kGiveBack[] = "PRAGMA incremental_vacuum(64)";
// New jobs need pages too: an eighth, but at least so many, stay for them.
constexpr std::int64_t kSparePages = 256;

struct Ended {
    JobId id;
    std::int64_t number = 0;
    std::string tenant;
    int state = 0;
    Time finished_at{};
    bool has_result = false;
};

Result<Ended> read_ended(const Query& row) {
    Ended job;
    job.id.uuid = row.uuid(0);
    job.number = row.integer(1);
    job.tenant = row.text(2);
    job.state = static_cast<int>(row.integer(3));
    job.finished_at = row.time(4);
    job.has_result = !row.is_null(5);
    return job;
}

Result<std::vector<Ended>> find_ended(
    Database& db, Time before, const PurgeCursor& cursor, int limit
) {
    Query query(db, kFindEnded);
    query.bind(before, cursor.finished_at, cursor.job, limit);
    return all_rows(query, read_ended);
}

template <class... Values>
Result<std::int64_t> number_of(Database& db, const char* sql, const Values&... values) {
    Query query(db, sql);
    const auto row = query.bind(values...).next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? query.integer(0) : 0;
}

Result<std::vector<jobs::Output>> outputs_of(Database& db, std::int64_t number) {
    std::vector<jobs::Output> outputs;
    Query query(db, kFindOutputs);
    const auto row = query.bind(number).next();
    if (!row) {
        return fail(row.error());
    }
    const auto listed = decode_array(*row ? query.text(0) : std::string_view());
    if (!listed) {
        return fail(listed.error());
    }
    for (const json::value& output : *listed) {
        outputs.push_back(jobs::Output::from_json(output.as_object()));
    }
    return outputs;
}

Result<bool> is_needed(Database& db, const Ended& job, const std::vector<jobs::Output>& outputs) {
    const auto deliveries = number_of(db, kHasDelivery, job.id);
    if (!deliveries || *deliveries != 0) {
        return deliveries ? Result<bool>(true) : fail(deliveries.error());
    }
    for (const jobs::Output* output : jobs::files_of(outputs)) {
        const auto used = is_used(db, output->asset, output->hash);
        if (!used || *used) {
            return used;
        }
    }
    return false;
}

Result<> drop_key(Session& session, const Ended& job) {
    jobs::Spec spec;
    {
        Query query(session.db, kFindSpecText);
        const auto row = query.bind(job.number).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row || query.text(0).find("idempotency_key") == std::string_view::npos) {
            return {};
        }
        if (auto decoded = decode_spec(query.text(0), spec); !decoded) {
            return decoded;
        }
    }
    return Query(session.db, kDropKey).bind(job.tenant, spec.idempotency_key, job.id).run();
}

Result<> drop_rows(Session& session, const Ended& job) {
    if (auto dropped = drop_key(session, job); !dropped) {
        return dropped;
    }
    for (const char* statement : {kDropEvents, kDropResult, kDropSpec, kDropDetails}) {
        if (auto dropped = Query(session.db, statement).bind(job.number).run(); !dropped) {
            return dropped;
        }
    }
    for (const char* statement : {kDropDeliveries, kDropTargets, kDropJob}) {
        if (auto dropped = Query(session.db, statement).bind(job.id).run(); !dropped) {
            return dropped;
        }
    }
    return {};
}

// Whether outputs stay whose own time has not come.
enum class Outputs { may_outlive, go };

// False: it is needed, and nothing of it was touched.
Result<bool> remove_job(Session& session, const Ended& job, Outputs whose) {
    const auto outputs =
        job.has_result ? outputs_of(session.db, job.number) : Result<std::vector<jobs::Output>>();
    if (!outputs) {
        return fail(outputs.error());
    }
    const auto needed = is_needed(session.db, job, *outputs);
    if (!needed || *needed) {
        return needed ? Result<bool>(false) : needed;
    }
    const auto dead = number_of(session.db, kCountDead, job.id);
    if (!dead) {
        return fail(dead.error());
    }
    for (const jobs::Output* output : jobs::files_of(*outputs)) {
        if (whose == Outputs::may_outlive && output->expires_at &&
            *output->expires_at > session.now) {
            auto kept = Query(session.db, kOutlive).bind(output->asset).run();
            if (!kept) {
                return fail(std::move(kept.error()));
            }
            continue;
        }
        auto removed = remove_record(session, output->asset);
        if (!removed) {
            return fail(std::move(removed.error()));
        }
    }
    if (auto dropped = drop_rows(session, job); !dropped) {
        return fail(std::move(dropped.error()));
    }
    using Kind = CounterChanges::Kind;
    session.counters.add(Kind::jobs, job.tenant, job.state, -1);
    session.counters.add(Kind::outbox, "", static_cast<int>(OutboxState::dead), -*dead);
    return true;
}

// True when there is more to give back.
Result<bool> give_pages_back(Database& db) {
    const auto has_too_many = [&db]() -> Result<bool> {
        const auto free = db.integer(kFreePages);
        if (!free) {
            return fail(free.error());
        }
        const auto all = db.integer(kAllPages);
        if (!all) {
            return fail(all.error());
        }
        return *free > std::max(kSparePages, *all / 8);
    };
    auto has_any = has_too_many();
    if (!has_any || !*has_any) {
        return has_any;
    }
    const auto before = db.integer(kFreePages);
    if (auto given = db.execute(kGiveBack); !given) {
        return fail(std::move(given.error()));
    }
    const auto after = db.integer(kFreePages);
    if (!before || !after || *after >= *before) {
        return false;  // a file from before pages could be given back (docs/operations.md)
    }
    return has_too_many();
}

}  // namespace

Result<jobs::Purged> PurgeJobs::operator()(Session& session) {
    const int count = std::max(1, limit);
    const auto ended = find_ended(session.db, before, cursor, count);
    if (!ended) {
        return fail(ended.error());
    }
    jobs::Purged purged;
    purged.more = ended->size() == static_cast<std::size_t>(count);
    cursor = purged.more ? PurgeCursor{ended->back().finished_at, ended->back().id} : PurgeCursor{};
    for (const Ended& job : *ended) {
        const auto removed = remove_job(session, job, Outputs::may_outlive);
        if (!removed) {
            return fail(removed.error());
        }
        purged.jobs += *removed ? 1 : 0;
    }
    auto dropped =
        Query(session.db, kDropOldKeys).bind(session.now - kIdempotencyKeyLife, count).run();
    if (!dropped) {
        return fail(std::move(dropped.error()));
    }
    const auto more_pages = give_pages_back(session.db);
    if (!more_pages) {
        return fail(more_pages.error());
    }
    purged.more = purged.more || *more_pages;
    return purged;
}

Result<> drop_outputs(Session& session, std::int64_t job_number) {
    const auto outputs = outputs_of(session.db, job_number);
    if (!outputs) {
        return fail(outputs.error());
    }
    for (const jobs::Output* output : jobs::files_of(*outputs)) {
        const auto used = is_used(session.db, output->asset, output->hash);
        if (!used) {
            return fail(used.error());
        }
        if (*used) {
            auto kept = Query(session.db, kOutlive).bind(output->asset).run();
            if (!kept) {
                return kept;
            }
            continue;
        }
        auto removed = remove_record(session, output->asset);
        if (!removed) {
            return fail(std::move(removed.error()));
        }
    }
    return {};
}

Result<> DiscardJob::operator()(Session& session) {
    std::optional<Ended> job;
    {
        Query query(session.db, kFindOne);
        query.bind(id);
        auto found = first_row(query, read_ended);
        if (!found) {
            return fail(std::move(found.error()));
        }
        job = std::move(*found);
    }
    if (!job) {
        return fail(Code::not_found, "there is no job " + id.to_string());
    }
    if (!jobs::is_terminal(static_cast<jobs::State>(job->state))) {
        return fail(Code::conflict, "job " + id.to_string() + " has not ended");
    }
    const auto removed = remove_job(session, *job, Outputs::go);
    if (!removed) {
        return fail(removed.error());
    }
    if (!*removed) {
        return fail(
            Code::conflict,
            "job " + id.to_string() +
                " is needed still: its webhook is to be delivered, or its outputs are in use"
        );
    }
    return {};
}

}  // namespace comfyd::ledger::sqlite
