// The table of tenants' endpoints.
#pragma once

#include "ledger/sqlite/session.hpp"
#include "notify/endpoint_store.hpp"

namespace comfyd::ledger::sqlite {

struct SaveEndpoint {
    using Value = void;
    notify::Endpoint endpoint;

    std::size_t bytes() const { return 4096; }
    Result<> operator()(Session& session);
};
struct RemoveEndpoint {
    using Value = bool;
    notify::EndpointId id;

    std::size_t bytes() const { return 128; }
    Result<bool> operator()(Session& session);
};

Result<notify::AllEndpoints> find_all_endpoints(Database& db);
Result<std::uint64_t> count_endpoint_changes(Database& db);

}  // namespace comfyd::ledger::sqlite
