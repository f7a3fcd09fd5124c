#include "ledger/sqlite/session_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kRemoveEnded[] =
    "DELETE FROM sessions WHERE (kind, id) IN "
    "(SELECT kind, id FROM sessions WHERE ends_at <= ? ORDER BY ends_at LIMIT 1000)";
constexpr char kRemoveOldest[] =
    "DELETE FROM sessions WHERE kind = ?1 AND id IN "
    "(SELECT id FROM sessions WHERE kind = ?1 AND tenant = ?2 AND owner = ?3 "
    "ORDER BY used_at DESC, id DESC LIMIT -1 OFFSET ?4)";
constexpr char kSave[] =
    "INSERT INTO sessions (kind, id, tenant, owner, used_at, ends_at, about) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr char kFind[] =
    "SELECT kind, id, tenant, owner, used_at, ends_at, about FROM sessions "
    "WHERE kind = ? AND id = ?";
constexpr char kRemove[] = "DELETE FROM sessions WHERE kind = ? AND id = ?";
constexpr char kNoteUse[] =
    "UPDATE sessions SET used_at = ?2, ends_at = ?3 WHERE kind = 0 AND id = ?1 AND used_at < ?2";
constexpr char kList[] =
    "SELECT kind, id, tenant, owner, used_at, ends_at, about FROM sessions "
    "WHERE kind = 0 AND id > ?1 AND ends_at > ?2 AND (?3 IS NULL OR tenant = ?3) "
    "AND (?4 IS NULL OR owner = ?4) ORDER BY id LIMIT ?5";

Result<auth::SessionRecord> read_session(const Query& query) {
    auto about = decode_object(query.text(6));
    if (!about) {
        return fail(damaged("session"));
    }
    return auth::SessionRecord{
        static_cast<auth::SessionKind>(query.integer(0)),
        query.string(1),
        query.string(2),
        query.string(3),
        query.time(4),
        query.time(5),
        std::move(*about),
    };
}

}  // namespace

Result<> SaveSession::operator()(Session& session) {
    Database& db = session.db;
    const int kind = static_cast<int>(record.kind);
    auto done = Query(db, kRemoveEnded).bind(record.used_at).run();
    if (done) {
        done = Query(db, kRemoveOldest).bind(kind, record.tenant, record.owner, kept_max - 1).run();
    }
    if (done) {
        done = Query(db, kSave)
                   .bind(
                       kind,
                       record.id,
                       record.tenant,
                       record.owner,
                       record.used_at,
                       record.ends_at,
                       json::serialize(record.about)
                   )
                   .run();
    }
    return done;
}

Result<std::optional<auth::SessionRecord>> TakeSession::operator()(Session& session) {
    auto found = find_session(session.db, kind, id);
    if (!found || !*found) {
        return found;
    }
    auto removed = Query(session.db, kRemove).bind(static_cast<int>(kind), id).run();
    if (!removed) {
        return fail(std::move(removed.error()));
    }
    return found;
}

Result<> NoteSessionUse::operator()(Session& session) {
    return Query(session.db, kNoteUse).bind(id, used_at, ends_at).run();
}

Result<std::optional<auth::SessionRecord>> find_session(
    Database& db, auth::SessionKind kind, const std::string& id
) {
    Query query(db, kFind);
    const auto row = query.bind(static_cast<int>(kind), id).next();
    if (!row) {
        return fail(row.error());
    }
    if (!*row) {
        return std::nullopt;
    }
    return read_session(query);
}

Result<std::vector<auth::SessionRecord>> list_sessions(
    Database& db, const auth::SessionQuery& query
) {
    std::vector<auth::SessionRecord> listed;
    Query rows(db, kList);
    rows.bind(query.after, query.now, query.tenant, query.owner, query.limit);
    auto read = each_row(rows, [&]() -> Result<> {
        auto session = read_session(rows);
        if (!session) {
            return fail(std::move(session.error()));
        }
        listed.push_back(std::move(*session));
        return {};
    });
    if (!read) {
        return fail(std::move(read.error()));
    }
    return listed;
}

}  // namespace comfyd::ledger::sqlite
