// Removes expired records, and blobs that no record refers to any more.
//
// Owned by the store. Members may be awaited on any executor, add_loose() called on any thread. A
// blob that is young (blob_store.hpp) stays: somebody may be about to make a record over it.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "assets/hashed_blobs.hpp"
#include "assets/store.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd::assets {

class Sweeper {
public:
    Sweeper(HashedBlobs& blobs, Catalogue& catalogue, Clock& clock)
        : blobs_(blobs), catalogue_(catalogue), clock_(clock) {}

    // Says that the blob may have lost its last record.
    void add_loose(std::string hash);
    // Both return how many they removed.
    Task<Result<int>> remove_expired_records();
    Task<Result<int>> remove_loose_blobs();

private:
    Task<Result<int>> scan();
    Task<Result<bool>> remove_if_loose(std::string hash);

    HashedBlobs& blobs_;
    Catalogue& catalogue_;
    Clock& clock_;

    Mutex mutex_;
    std::set<std::string> loose_ COMFYD_GUARDED_BY(mutex_);
    std::optional<Time> scanned_at_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::assets
