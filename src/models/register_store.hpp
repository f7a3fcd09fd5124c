// The register of models as nodes share it: documents, of which the store knows no more than whose
// they are. None is ever removed: of a model that is forgotten its highest number stays.
// Implemented by the ledger room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/task.hpp"

namespace comfyd::models {

struct ModelRecord {
    std::string path;            // "checkpoints/a.safetensors"
    std::uint64_t revision = 0;  // counts its changes
    json::object about{};
};

struct AllModels {
    std::uint64_t changes = 0;  // that had been made when it was read, or fewer
    std::vector<ModelRecord> records{};
};

class RegisterStore {
public:
    virtual ~RegisterStore() = default;
    // A new one has revision 1. Code::conflict when the stored revision is not the one before.
    virtual Task<Result<>> save_model(ModelRecord record) = 0;
    virtual Task<Result<AllModels>> all_models() = 0;
    // How often one was saved. Cheap.
    virtual Task<Result<std::uint64_t>> model_changes() = 0;
};

}  // namespace comfyd::models
