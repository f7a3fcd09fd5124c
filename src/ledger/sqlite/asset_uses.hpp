// The asset_uses table: which assets are mentioned by jobs that have not ended and by named
// workflows, so that none of them goes away meanwhile.
//
// Mentions are found in the text, wherever they stand in it: what looks like one and is none costs
// a row and nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/id.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

struct MentionedAssets {
    std::set<AssetId> ids;
    std::set<std::string> hashes;
};
// None in a workflow without references to assets.
MentionedAssets mentioned_assets(std::string_view workflow);

Result<> add_uses(Database& db, const JobId& job, const MentionedAssets& assets);
Result<> add_uses(Database& db, std::int64_t version, const MentionedAssets& assets);
// Of a job that was ended and waits again.
Result<> add_uses_again(Database& db, const JobId& job);
Result<> drop_uses(Database& db, const JobId& job);
// Of one version of a named workflow, and of all.
Result<> drop_uses(Database& db, std::int64_t workflow, int version);
Result<> drop_all_uses(Database& db, std::int64_t workflow);

Result<bool> is_used(Database& db, const AssetId& asset, const std::string& hash);

// For a database from before this table.
Result<> note_all_uses(Database& db);

}  // namespace comfyd::ledger::sqlite
