// What bulks ask of durable storage. Implemented by the ledger room.
//
// Writes return after the data is on disk, reads see every write that returned before them. All
// members may be called on any executor; a Task continues on the executor that awaited it. Failures
// besides those named at the members: Code::storage_full, Code::storage_unavailable; nothing is
// half-written then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/bulk.hpp"

namespace comfyd::jobs {

inline constexpr int kBulkPageMax = 1'000;

// The answer to a new bulk. When another of the tenant has its idempotency key, nothing was written
// and this is that one.
struct BulkAdded {
    bool created = false;
    std::optional<Bulk> existing{};
};

struct BulkPage {
    std::vector<Bulk> bulks;  // the newest first
    std::optional<BulkId> next_cursor;
};

struct BulkItemQuery {
    BulkId bulk;
    std::optional<ItemState> state{};  // nullopt: any
    int after = -1;                    // the last index of the page before
    int limit = kBulkItemsInACommit;   // at most kBulkPageMax
};

class BulkStore {
public:
    virtual ~BulkStore() = default;

    // `plan`: what every item is made of, as its owner writes it; never changed. Code::conflict
    // when the id exists.
    virtual Task<Result<BulkAdded>> add_bulk(Bulk bulk, std::string plan) = 0;
    // Code::conflict when the stored revision is not change.bulk.revision - 1; Code::not_found.
    virtual Task<Result<>> commit_bulk(BulkChange change) = 0;
    // With its plan and its items. Nothing to do is well done.
    virtual Task<Result<>> remove_bulk(BulkId id) = 0;

    virtual Task<Result<std::optional<Bulk>>> find_bulk(BulkId id) = 0;
    virtual Task<Result<std::optional<std::string>>> find_bulk_plan(BulkId id) = 0;
    // `before`: the last of the page before.
    virtual Task<Result<BulkPage>> list_bulks(
        std::string tenant, std::optional<BulkId> before, int limit
    ) = 0;
    // By index.
    virtual Task<Result<std::vector<BulkItem>>> bulk_items(BulkItemQuery query) = 0;
    // Those that somebody has to do something about, the oldest first.
    virtual Task<Result<std::vector<Bulk>>> open_bulks(int limit) = 0;
    // Ended before, and nothing is left to do about them; the oldest first.
    virtual Task<Result<std::vector<BulkId>>> ended_bulks(Time before, int limit) = 0;
};

}  // namespace comfyd::jobs
