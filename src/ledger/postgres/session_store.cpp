#include "ledger/postgres/session_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::postgres {
namespace {

// Other nodes may be at the same rows: nobody waits for what somebody else removes.
constexpr char kRemoveEnded[] =
    "DELETE FROM sessions WHERE (kind, id) IN (SELECT kind, id FROM sessions WHERE ends_at <= $1 "
    "ORDER BY ends_at LIMIT 1000 FOR UPDATE SKIP LOCKED)";
constexpr char kRemoveOldest[] =
    "DELETE FROM sessions WHERE kind = $1 AND id IN (SELECT id FROM sessions "
    "WHERE kind = $1 AND tenant = $2 AND owner = $3 "
    "ORDER BY used_at DESC, id DESC OFFSET $4 FOR UPDATE SKIP LOCKED)";
// One that is there was saved by an attempt whose answer was lost.
constexpr char kSave[] =
    "INSERT INTO sessions (kind, id, tenant, owner, used_at, ends_at, about) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, id) DO NOTHING";
constexpr char kTake[] =
    "DELETE FROM sessions WHERE kind = $1 AND id = $2 "
    "RETURNING kind, id, tenant, owner, used_at, ends_at, about";
constexpr char kNoteUse[] =
    "UPDATE sessions SET used_at = $2, ends_at = $3 WHERE kind = 0 AND id = $1 AND used_at < $2";
constexpr char kFind[] =
    "SELECT kind, id, tenant, owner, used_at, ends_at, about FROM sessions "
    "WHERE kind = $1 AND id = $2";
constexpr char kList[] =
    "SELECT kind, id, tenant, owner, used_at, ends_at, about FROM sessions "
    "WHERE kind = 0 AND id > $1 AND ends_at > $2 AND ($3::text IS NULL OR tenant = $3) "
    "AND ($4::text IS NULL OR owner = $4) ORDER BY id LIMIT $5";

}  // namespace

SaveSession::SaveSession(auth::SessionRecord record, int kept_max)
    : record_(std::move(record)), about_(json::serialize(record_.about)), kept_max_(kept_max) {}

bool SaveSession::join(Batch& batch) {
    const auto kind = static_cast<std::int64_t>(record_.kind);
    batch.add({kRemoveEnded, {record_.used_at}});
    batch.add({kRemoveOldest, {kind, record_.tenant, record_.owner, kept_max_ - 1}});
    batch.add(
        {kSave,
         {kind, record_.id, record_.tenant, record_.owner, record_.used_at, record_.ends_at, about_}
        }
    );
    return true;
}

bool TakeSession::join(Batch& batch) {
    place_ = batch.add({kTake, {kind_, id_}});
    return true;
}

void TakeSession::conclude(const Batch& batch) {
    outcome.emplace(batch.answer(place_).first(read_session));
}

bool NoteSessionUse::join(Batch& batch) {
    batch.add({kNoteUse, {id_, used_at_, ends_at_}});
    return true;
}

Statement find_session(auth::SessionKind kind, const std::string& id) {
    return {kFind, {static_cast<std::int64_t>(kind), id}};
}

Statement list_sessions(const auth::SessionQuery& query) {
    return {kList, {query.after, query.now, query.tenant, query.owner, query.limit}};
}

Result<auth::SessionRecord> read_session(const Row& row) {
    auto about = decode_object(row.text(6));
    if (!about) {
        return fail(damaged("session"));
    }
    return auth::SessionRecord{
        static_cast<auth::SessionKind>(row.integer(0)),
        row.string(1),
        row.string(2),
        row.string(3),
        row.time(4),
        row.time(5),
        std::move(*about),
    };
}

}  // namespace comfyd::ledger::postgres
