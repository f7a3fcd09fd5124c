// Bulks in memory, by the same contract as on disk, for tests. One executor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobs/bulk_store.hpp"

namespace comfyd::ledger {

class MemoryBulks final : public jobs::BulkStore {
public:
    Task<Result<jobs::BulkAdded>> add_bulk(jobs::Bulk bulk, std::string plan) override;
    Task<Result<>> commit_bulk(jobs::BulkChange change) override;
    Task<Result<>> remove_bulk(jobs::BulkId id) override;
    Task<Result<std::optional<jobs::Bulk>>> find_bulk(jobs::BulkId id) override;
    Task<Result<std::optional<std::string>>> find_bulk_plan(jobs::BulkId id) override;
    Task<Result<jobs::BulkPage>> list_bulks(
        std::string tenant, std::optional<jobs::BulkId> before, int limit
    ) override;
    Task<Result<std::vector<jobs::BulkItem>>> bulk_items(jobs::BulkItemQuery query) override;
    Task<Result<std::vector<jobs::Bulk>>> open_bulks(int limit) override;
    Task<Result<std::vector<jobs::BulkId>>> ended_bulks(Time before, int limit) override;

private:
    struct Entry {
        jobs::Bulk bulk;
        std::string plan;
        std::map<int, jobs::BulkItem> items;
    };
    std::map<jobs::BulkId, Entry> entries_;
};

}  // namespace comfyd::ledger
