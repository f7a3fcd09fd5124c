// Puts the items of a new bulk into the store, a group at a time, and starts it when all are there.
// Who repeats a load that was cut off goes on where it was: an item has its index, and those that
// are stored are left out. Runs on the executor of the request that brings them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/bulk_store.hpp"

namespace comfyd::bulk {

class Loading {
public:
    // Both outlive it.
    Loading(jobs::BulkStore& store, Clock& clock, int items_max)
        : store_(store), clock_(clock), items_max_(items_max) {}

    // Stores the bulk, in state loading. An earlier one with the same key and content is taken up
    // again: what it is by then says whether there is anything left to load. False: it is all
    // there. Code::idempotency_key_reuse.
    Task<Result<bool>> begin(jobs::Bulk bulk, std::string plan);
    // The index that the next item has.
    int next_index() const { return next_index_; }
    // In the order of their indexes. Code::payload_too_large beyond items_max, Code::conflict when
    // the bulk was cancelled meanwhile.
    Task<Result<>> add(std::vector<jobs::BulkItem> items);
    // Starts it. Code::invalid_argument when it has no items.
    Task<Result<>> finish();
    // Takes back what was stored, where this request is the one that began it.
    Task<> give_up();

    const jobs::Bulk& bulk() const { return bulk_; }
    bool was_created() const { return was_created_; }

private:
    Task<Result<>> store_group();
    Task<Result<>> read_again();

    jobs::BulkStore& store_;
    Clock& clock_;
    const int items_max_;
    jobs::Bulk bulk_;
    bool was_created_ = false;
    int next_index_ = 0;
    std::vector<jobs::BulkItem> group_;
    std::size_t group_bytes_ = 0;
};

}  // namespace comfyd::bulk
