#include "ledger/sqlite/asset_uses.hpp"

#include <utility>

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kInsert[] = "INSERT OR IGNORE INTO asset_uses (holder, asset) VALUES (?, ?)";
constexpr char kDrop[] = "DELETE FROM asset_uses WHERE holder = ?";
constexpr char kDropVersion[] =
    "DELETE FROM asset_uses WHERE holder = "
    "(SELECT number FROM workflow_versions WHERE workflow = ? AND version = ?)";
constexpr char kDropWorkflow[] =
    "DELETE FROM asset_uses WHERE holder IN "
    "(SELECT number FROM workflow_versions WHERE workflow = ?)";
constexpr char kIsUsed[] = "SELECT EXISTS (SELECT 1 FROM asset_uses WHERE asset IN (?, ?))";
constexpr char kWorkflowOf[] =
    "SELECT s.workflow FROM jobs j CROSS JOIN job_specs s ON s.number = j.number WHERE j.id = ?";
constexpr char kUnfinished[] =
    "SELECT j.id, s.workflow FROM jobs j INDEXED BY jobs_unfinished "
    "CROSS JOIN job_specs s ON s.number = j.number WHERE j.state < 3";
constexpr char kVersions[] = "SELECT number, workflow_text, prompt FROM workflow_versions";

template <class Holder>
Result<> add(Database& db, const Holder& holder, const MentionedAssets& assets) {
    for (const AssetId& id : assets.ids) {
        if (auto added = Query(db, kInsert).bind(holder, id).run(); !added) {
            return added;
        }
    }
    for (const std::string& hash : assets.hashes) {
        if (auto added = Query(db, kInsert).bind(holder, hash).run(); !added) {
            return added;
        }
    }
    return {};
}

}  // namespace

Result<> add_uses(Database& db, const JobId& job, const MentionedAssets& assets) {
    return add(db, job, assets);
}

Result<> add_uses(Database& db, std::int64_t version, const MentionedAssets& assets) {
    return add(db, version, assets);
}

Result<> add_uses_again(Database& db, const JobId& job) {
    MentionedAssets assets;
    {
        Query query(db, kWorkflowOf);
        const auto row = query.bind(job).next();
        if (!row) {
            return fail(row.error());
        }
        assets = mentioned_assets(query.text(0));
    }
    return add(db, job, assets);
}

Result<> drop_uses(Database& db, const JobId& job) {
    return Query(db, kDrop).bind(job).run();
}

Result<> drop_uses(Database& db, std::int64_t workflow, int version) {
    return Query(db, kDropVersion).bind(workflow, version).run();
}

Result<> drop_all_uses(Database& db, std::int64_t workflow) {
    return Query(db, kDropWorkflow).bind(workflow).run();
}

Result<bool> is_used(Database& db, const AssetId& asset, const std::string& hash) {
    Query query(db, kIsUsed);
    const auto row = query.bind(asset, hash).next();
    if (!row) {
        return fail(row.error());
    }
    return query.integer(0) != 0;
}

Result<> note_all_uses(Database& db) {
    Query jobs(db, kUnfinished);
    jobs.bind();
    auto noted = each_row(jobs, [&] {
        return add(db, JobId{jobs.uuid(0)}, mentioned_assets(jobs.text(1)));
    });
    if (!noted) {
        return noted;
    }
    Query versions(db, kVersions);
    versions.bind();
    return each_row(versions, [&]() -> Result<> {
        for (const int column : {1, 2}) {
            auto added = add(db, versions.integer(0), mentioned_assets(versions.text(column)));
            if (!added) {
                return added;
            }
        }
        return {};
    });
}

}  // namespace comfyd::ledger::sqlite
