// The asset_uses table: which assets are mentioned by jobs that have not ended and by named
// workflows, so that none of them goes away meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "base/id.hpp"
#include "ledger/mentioned_assets.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

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
