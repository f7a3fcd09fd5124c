#include "ledger/postgres/identity_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::postgres {
namespace {

// One that is there as it is to be was saved by an attempt whose answer was lost.
constexpr char kSave[] =
    "WITH saved AS (INSERT INTO identities (kind, id, revision, about) SELECT $1, $2, $3, $4 "
    "WHERE $3 = 1 OR EXISTS (SELECT 1 FROM identities WHERE kind = $1 AND id = $2) "
    "ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, about = excluded.about "
    "WHERE identities.revision = excluded.revision - 1 RETURNING 1), "
    "counted AS (UPDATE identity_changes SET count = count + 1 "
    "WHERE EXISTS (SELECT 1 FROM saved)) "
    "SELECT 1 FROM saved UNION ALL SELECT 1 FROM identities "
    "WHERE kind = $1 AND id = $2 AND revision = $3 AND about = $4";
constexpr char kRemove[] =
    "WITH removed AS (DELETE FROM identities WHERE kind = $1 AND id = $2 RETURNING 1), "
    "unused AS (DELETE FROM key_uses WHERE key = $2 AND $1 = 1), "
    "counted AS (UPDATE identity_changes SET count = count + 1 "
    "WHERE EXISTS (SELECT 1 FROM removed)) SELECT 1 FROM removed";
constexpr char kNoteUses[] =
    "INSERT INTO key_uses (key, used_at) SELECT n.key, n.used_at "
    "FROM unnest($1, $2) AS n (key, used_at) "
    "WHERE EXISTS (SELECT 1 FROM identities i WHERE i.kind = 1 AND i.id = n.key) "
    "ORDER BY n.key ON CONFLICT (key) DO UPDATE "
    "SET used_at = greatest(key_uses.used_at, excluded.used_at)";
constexpr char kChanges[] = "SELECT count FROM identity_changes";
constexpr char kAll[] = "SELECT kind, id, revision, about FROM identities ORDER BY kind, id";
constexpr char kAllUses[] = "SELECT key, used_at FROM key_uses";

}  // namespace

SaveIdentity::SaveIdentity(const auth::IdentityRecord& record)
    : kind_(static_cast<std::int64_t>(record.kind)),
      id_(record.id),
      revision_(record.revision),
      about_(json::serialize(record.about)) {}

bool SaveIdentity::join(Batch& batch) {
    place_ = batch.add({kSave, {kind_, id_, revision_, about_}});
    return true;
}

void SaveIdentity::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(
            fail(Code::conflict, "it was changed meanwhile; read it again and decide anew")
        );
    } else {
        outcome.emplace();
    }
}

bool RemoveIdentity::join(Batch& batch) {
    place_ = batch.add({kRemove, {kind_, id_}});
    return true;
}

void RemoveIdentity::conclude(const Batch& batch) {
    outcome.emplace(!batch.answer(place_).empty() || batch.at.is_again);
}

NoteKeyUses::NoteKeyUses(const auth::KeyUses& uses) {
    for (const auto& [key, used_at] : uses) {
        uses_.add(key, used_at);
    }
}

bool NoteKeyUses::join(Batch& batch) {
    batch.add(uses_.statement(kNoteUses));
    return true;
}

Statement count_identity_changes() {
    return {kChanges};
}

Statements find_all_identities() {
    return {{kChanges}, {kAll}, {kAllUses}};
}

Result<auth::AllIdentities> read_all_identities(const std::vector<Rows>& answers) {
    auth::AllIdentities all;
    all.changes =
        answers.at(0).empty() ? 0 : static_cast<std::uint64_t>(answers.at(0)[0].integer(0));
    const Rows& records = answers.at(1);
    for (int i = 0; i < records.size(); ++i) {
        const Row row = records[i];
        auto about = decode_object(row.text(3));
        if (!about) {
            return fail(damaged("identity"));
        }
        all.records.push_back(
            {static_cast<auth::IdentityKind>(row.integer(0)),
             row.string(1),
             static_cast<std::uint64_t>(row.integer(2)),
             std::move(*about)}
        );
    }
    const Rows& uses = answers.at(2);
    for (int i = 0; i < uses.size(); ++i) {
        all.uses[uses[i].string(0)] = uses[i].time(1);
    }
    return all;
}

}  // namespace comfyd::ledger::postgres
