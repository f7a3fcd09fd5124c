// Tenants' endpoints, as nodes share them. Implemented by the ledger room.
#pragma once

#include <cstdint>
#include <vector>

#include "base/task.hpp"
#include "notify/endpoint.hpp"

namespace comfyd::notify {

struct AllEndpoints {
    std::uint64_t changes = 0;  // that had been made when it was read, or fewer
    std::vector<Endpoint> endpoints;
};

class EndpointStore {
public:
    virtual ~EndpointStore() = default;
    // A new one has revision 1. Code::conflict when the stored revision is not the one before.
    virtual Task<Result<>> save_endpoint(Endpoint endpoint) = 0;
    virtual Task<Result<bool>> remove_endpoint(EndpointId id) = 0;
    // Those that cannot be read (sealed with another secret) are left out.
    virtual Task<Result<AllEndpoints>> all_endpoints() = 0;
    // How often one was saved or removed. Cheap.
    virtual Task<Result<std::uint64_t>> endpoint_changes() = 0;
};

}  // namespace comfyd::notify
