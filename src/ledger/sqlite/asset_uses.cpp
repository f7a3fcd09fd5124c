#include "ledger/sqlite/asset_uses.hpp"

#include <algorithm>
#include <cctype>
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

constexpr std::string_view kHash = "blake3:";
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kIdBytes = 36;
constexpr std::size_t kFirstDash = 8;

bool is_hex(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isxdigit(c) != 0;
    });
}

void find_hashes(std::string_view text, std::set<std::string>& into) {
    for (auto at = text.find(kHash); at != text.npos; at = text.find(kHash, at + 1)) {
        const std::string_view name = text.substr(at, kHash.size() + kHashDigits);
        if (name.size() == kHash.size() + kHashDigits && is_hex(name.substr(kHash.size()))) {
            into.emplace(name);
        }
    }
}

void find_ids(std::string_view text, std::set<AssetId>& into) {
    for (auto dash = text.find('-', kFirstDash); dash != text.npos;
         dash = text.find('-', dash + 1)) {
        if (const auto id = AssetId::parse(text.substr(dash - kFirstDash, kIdBytes))) {
            into.insert(*id);
        }
    }
}

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

MentionedAssets mentioned_assets(std::string_view workflow) {
    // A slash may be escaped in JSON, so the name alone is looked for.
    const bool has_references = workflow.find("ASSET") != workflow.npos;
    MentionedAssets found;
    if (has_references || workflow.find("asset:") != workflow.npos) {
        find_ids(workflow, found.ids);
    }
    if (has_references || workflow.find(kHash) != workflow.npos) {
        find_hashes(workflow, found.hashes);
    }
    return found;
}

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
