#include "ledger/sqlite/notes.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kWrite[] =
    "INSERT INTO notes (name, updated_at, text) VALUES (?1, ?2, ?3) "
    "ON CONFLICT (name) DO UPDATE SET updated_at = ?2, text = ?3";
constexpr char kFind[] = "SELECT text FROM notes WHERE name = ?";

}  // namespace

Result<> WriteNote::operator()(Session& session) {
    return Query(session.db, kWrite).bind(name, session.now, text).run();
}

Result<std::optional<std::string>> find_note(Database& db, const std::string& name) {
    Query query(db, kFind);
    const auto row = query.bind(name).next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? std::optional(query.string(0)) : std::nullopt;
}

}  // namespace comfyd::ledger::sqlite
