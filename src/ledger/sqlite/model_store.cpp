#include "ledger/sqlite/model_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFindRevision[] = "SELECT revision FROM models WHERE path = ?";
constexpr char kSave[] = "INSERT OR REPLACE INTO models (path, revision, about) VALUES (?, ?, ?)";
constexpr char kAll[] = "SELECT path, revision, about FROM models";
constexpr char kChanges[] = "SELECT count FROM model_changes";
constexpr char kCountChange[] = "UPDATE model_changes SET count = count + 1";

// 0: there is none.
Result<std::uint64_t> revision_of(Database& db, const std::string& path) {
    Query query(db, kFindRevision);
    const auto row = query.bind(path).next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

}  // namespace

Result<> SaveModel::operator()(Session& session) {
    const auto stored = revision_of(session.db, record.path);
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored + 1 != record.revision) {
        return fail(Code::conflict, "it was changed meanwhile; read it again and decide anew");
    }
    const std::string about = json::serialize(record.about);
    auto saved = Query(session.db, kSave).bind(record.path, record.revision, about).run();
    return saved ? Query(session.db, kCountChange).bind().run() : saved;
}

Result<models::AllModels> find_all_models(Database& db) {
    models::AllModels all;
    const auto changes = count_model_changes(db);
    if (!changes) {
        return fail(changes.error());
    }
    all.changes = *changes;
    Query records(db, kAll);
    records.bind();
    auto read = each_row(records, [&]() -> Result<> {
        auto about = decode_object(records.text(2));
        if (!about) {
            return fail(damaged("model"));
        }
        all.records.push_back(
            {records.string(0), static_cast<std::uint64_t>(records.integer(1)), std::move(*about)}
        );
        return {};
    });
    return read ? Result<models::AllModels>(std::move(all)) : fail(std::move(read.error()));
}

Result<std::uint64_t> count_model_changes(Database& db) {
    Query query(db, kChanges);
    const auto row = query.bind().next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

}  // namespace comfyd::ledger::sqlite
