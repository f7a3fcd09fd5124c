// The register of models.
#pragma once

#include <string>
#include <vector>

#include "ledger/postgres/batch.hpp"
#include "models/register_store.hpp"

namespace comfyd::ledger::postgres {

class SaveModel final : public WriteOf<void> {
public:
    explicit SaveModel(const models::ModelRecord& record);
    std::size_t bytes() const override { return 128 + about_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    std::string path_;
    std::uint64_t revision_;
    std::string about_;
    std::size_t place_ = 0;
};

Statement count_model_changes();
// The count first: what is read may be newer than it, never older.
Statements find_all_models();
Result<models::AllModels> read_all_models(const std::vector<Rows>& answers);

}  // namespace comfyd::ledger::postgres
