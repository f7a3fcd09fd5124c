// The register of models.
#pragma once

#include "ledger/sqlite/session.hpp"
#include "models/register_store.hpp"

namespace comfyd::ledger::sqlite {

struct SaveModel {
    using Value = void;
    models::ModelRecord record;

    std::size_t bytes() const { return 2048; }
    Result<> operator()(Session& session);
};

Result<models::AllModels> find_all_models(Database& db);
Result<std::uint64_t> count_model_changes(Database& db);

}  // namespace comfyd::ledger::sqlite
