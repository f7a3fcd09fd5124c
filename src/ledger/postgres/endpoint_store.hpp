// The table of tenants' endpoints; their secrets are sealed where nodes have a secret.
#pragma once

#include <string>
#include <vector>

#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/secret_texts.hpp"
#include "notify/endpoint_store.hpp"

namespace comfyd::ledger::postgres {

class SaveEndpoint final : public WriteOf<void> {
public:
    SaveEndpoint(const notify::Endpoint& endpoint, const SecretTexts& texts);
    std::size_t bytes() const override { return 128 + about_.size() + secrets_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    notify::EndpointId id_;
    std::string tenant_;
    std::uint64_t revision_;
    std::string about_;
    std::string secrets_;
    std::size_t place_ = 0;
};

class RemoveEndpoint final : public WriteOf<bool> {
public:
    explicit RemoveEndpoint(notify::EndpointId id) : id_(id) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    notify::EndpointId id_;
    std::size_t place_ = 0;
};

Statement count_endpoint_changes();
// The count first: what is read may be newer than it, never older.
Statements find_all_endpoints();
Result<notify::AllEndpoints> read_all_endpoints(
    const std::vector<Rows>& answers, const SecretTexts& texts
);

}  // namespace comfyd::ledger::postgres
