// Tenants and API keys as nodes share them: documents, of which the store knows no more than whose
// they are. Implemented by the ledger room.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::auth {

enum class IdentityKind { tenant = 0, key = 1 };

struct IdentityRecord {
    IdentityKind kind = IdentityKind::tenant;
    std::string id;              // the tenant's name, or the key's id
    std::uint64_t revision = 0;  // counts its changes
    json::object about;
};

using KeyUses = std::map<std::string, Time>;  // when a key was used last, by its id

struct AllIdentities {
    std::uint64_t changes = 0;  // that had been made when it was read, or fewer
    std::vector<IdentityRecord> records;
    KeyUses uses;
};

class IdentityStore {
public:
    virtual ~IdentityStore() = default;
    // A new one has revision 1. Code::conflict when the stored revision is not the one before.
    virtual Task<Result<>> save_identity(IdentityRecord record) = 0;
    virtual Task<Result<bool>> remove_identity(IdentityKind kind, std::string id) = 0;
    virtual Task<Result<AllIdentities>> all_identities() = 0;
    // How often one was saved or removed. Cheap.
    virtual Task<Result<std::uint64_t>> identity_changes() = 0;
    // Counts as no change. An earlier time than the stored one is passed over.
    virtual Task<Result<>> note_key_uses(KeyUses uses) = 0;
};

}  // namespace comfyd::auth
