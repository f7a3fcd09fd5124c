#include "ledger/sqlite/identity_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFindRevision[] = "SELECT revision FROM identities WHERE kind = ? AND id = ?";
constexpr char kSave[] =
    "INSERT OR REPLACE INTO identities (kind, id, revision, about) VALUES (?, ?, ?, ?)";
constexpr char kRemove[] = "DELETE FROM identities WHERE kind = ? AND id = ?";
constexpr char kRemoveUse[] = "DELETE FROM key_uses WHERE key = ?";
constexpr char kAll[] = "SELECT kind, id, revision, about FROM identities";
constexpr char kAllUses[] = "SELECT key, used_at FROM key_uses";
constexpr char kNoteUse[] =
    "INSERT INTO key_uses (key, used_at) SELECT ?1, ?2 "
    "WHERE EXISTS (SELECT 1 FROM identities WHERE kind = 1 AND id = ?1) "
    "ON CONFLICT (key) DO UPDATE SET used_at = max(used_at, excluded.used_at)";
constexpr char kChanges[] = "SELECT count FROM identity_changes";
constexpr char kCountChange[] = "UPDATE identity_changes SET count = count + 1";

// 0: there is none.
Result<std::uint64_t> revision_of(Database& db, auth::IdentityKind kind, const std::string& id) {
    Query query(db, kFindRevision);
    const auto row = query.bind(static_cast<int>(kind), id).next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

}  // namespace

Result<> SaveIdentity::operator()(Session& session) {
    const auto stored = revision_of(session.db, record.kind, record.id);
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored + 1 != record.revision) {
        return fail(Code::conflict, "it was changed meanwhile; read it again and decide anew");
    }
    const std::string about = json::serialize(record.about);
    auto saved = Query(session.db, kSave)
                     .bind(static_cast<int>(record.kind), record.id, record.revision, about)
                     .run();
    return saved ? Query(session.db, kCountChange).bind().run() : saved;
}

Result<bool> RemoveIdentity::operator()(Session& session) {
    const auto stored = revision_of(session.db, kind, id);
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored == 0) {
        return false;
    }
    auto done = Query(session.db, kRemove).bind(static_cast<int>(kind), id).run();
    if (done && kind == auth::IdentityKind::key) {
        done = Query(session.db, kRemoveUse).bind(id).run();
    }
    if (done) {
        done = Query(session.db, kCountChange).bind().run();
    }
    return done ? Result<bool>(true) : fail(std::move(done.error()));
}

Result<> NoteKeyUses::operator()(Session& session) {
    for (const auto& [key, used_at] : uses) {
        if (auto noted = Query(session.db, kNoteUse).bind(key, used_at).run(); !noted) {
            return noted;
        }
    }
    return {};
}

Result<auth::AllIdentities> find_all_identities(Database& db) {
    auth::AllIdentities all;
    const auto changes = count_identity_changes(db);
    if (!changes) {
        return fail(changes.error());
    }
    all.changes = *changes;
    Query records(db, kAll);
    records.bind();
    auto read = each_row(records, [&]() -> Result<> {
        auto about = decode_object(records.text(3));
        if (!about) {
            return fail(damaged("identity"));
        }
        all.records.push_back(
            {static_cast<auth::IdentityKind>(records.integer(0)),
             records.string(1),
             static_cast<std::uint64_t>(records.integer(2)),
             std::move(*about)}
        );
        return {};
    });
    if (!read) {
        return fail(std::move(read.error()));
    }
    Query uses(db, kAllUses);
    uses.bind();
    read = each_row(uses, [&] { all.uses[uses.string(0)] = uses.time(1); });
    return read ? Result<auth::AllIdentities>(std::move(all)) : fail(std::move(read.error()));
}

Result<std::uint64_t> count_identity_changes(Database& db) {
    Query query(db, kChanges);
    const auto row = query.bind().next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

}  // namespace comfyd::ledger::sqlite
