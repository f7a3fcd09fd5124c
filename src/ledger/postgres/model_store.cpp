#include "ledger/postgres/model_store.hpp"

#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::postgres {
namespace {

// One that is there as it is to be was saved by an attempt whose answer was lost.
constexpr char kSave[] =
    "WITH saved AS (INSERT INTO models (path, revision, about) SELECT $1, $2, $3 "
    "WHERE $2 = 1 OR EXISTS (SELECT 1 FROM models WHERE path = $1) "
    "ON CONFLICT (path) DO UPDATE SET revision = excluded.revision, about = excluded.about "
    "WHERE models.revision = excluded.revision - 1 RETURNING 1), "
    "counted AS (UPDATE model_changes SET count = count + 1 "
    "WHERE EXISTS (SELECT 1 FROM saved)) "
    "SELECT 1 FROM saved UNION ALL SELECT 1 FROM models "
    "WHERE path = $1 AND revision = $2 AND about = $3";
constexpr char kChanges[] = "SELECT count FROM model_changes";
constexpr char kAll[] = "SELECT path, revision, about FROM models ORDER BY path";

}  // namespace

SaveModel::SaveModel(const models::ModelRecord& record)
    : path_(record.path), revision_(record.revision), about_(json::serialize(record.about)) {}

bool SaveModel::join(Batch& batch) {
    place_ = batch.add({kSave, {path_, revision_, about_}});
    return true;
}

void SaveModel::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(
            fail(Code::conflict, "it was changed meanwhile; read it again and decide anew")
        );
    } else {
        outcome.emplace();
    }
}

Statement count_model_changes() {
    return {kChanges};
}

Statements find_all_models() {
    return {{kChanges}, {kAll}};
}

Result<models::AllModels> read_all_models(const std::vector<Rows>& answers) {
    models::AllModels all;
    all.changes =
        answers.at(0).empty() ? 0 : static_cast<std::uint64_t>(answers.at(0)[0].integer(0));
    const Rows& records = answers.at(1);
    for (int i = 0; i < records.size(); ++i) {
        const Row row = records[i];
        auto about = decode_object(row.text(2));
        if (!about) {
            return fail(damaged("model"));
        }
        all.records.push_back(
            {row.string(0), static_cast<std::uint64_t>(row.integer(1)), std::move(*about)}
        );
    }
    return all;
}

}  // namespace comfyd::ledger::postgres
