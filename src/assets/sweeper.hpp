// Removes what has expired and what nothing refers to any more, and moves what is seldom looked at
// to cheaper storage.
//
// Owned by the store. Members may be awaited on any executor. Everything that is begun stands in
// the ledger (blob_records.hpp): what a restart interrupts, the next sweep goes on with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assets/blob_stores.hpp"
#include "assets/store.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd::assets {

class Sweeper {
public:
    struct Options {
        Millis young;  // how long a blob without a reference stays, and one that was given up
        RetentionRules retention;
    };
    // All outlive it.
    Sweeper(const BlobStores& stores, Catalogue& catalogue, Clock& clock, Options options)
        : stores_(stores), catalogue_(catalogue), clock_(clock), options_(std::move(options)) {}

    // How many records and blobs were removed.
    Task<Result<int>> sweep();

private:
    Task<Result<int>> remove_expired_records();
    Task<Result<>> move_records();
    Task<Result<>> move(Asset asset);
    Task<Result<>> give_up_loose_blobs();
    Task<Result<int>> remove_keys();
    Task<Result<bool>> remove_key(BlobRemoval removal);
    Task<Result<>> look_for_leftovers();
    Task<Result<>> enter_leftovers(std::vector<BlobRecord> found, Time goes_at);
    Task<Result<>> look_for_leftovers_in(std::string name, BlobStore& store);

    const BlobStores& stores_;
    Catalogue& catalogue_;
    Clock& clock_;
    const Options options_;

    Mutex mutex_;
    std::optional<Time> looked_at_ COMFYD_GUARDED_BY(mutex_);  // for leftovers
    bool has_looked_again_ COMFYD_GUARDED_BY(mutex_) = false;  // since the start
};

}  // namespace comfyd::assets
