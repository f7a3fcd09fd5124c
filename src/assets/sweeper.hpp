// Removes expired records, and blobs that no record refers to any more.
//
// Owned by the store. Members may be awaited on any executor, add_loose() called on any thread. A
// blob that is young (blob_files.hpp) stays: somebody may be about to make a record over it.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "assets/blob_files.hpp"
#include "assets/store.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"

namespace comfyd::assets {

class Sweeper {
public:
    Sweeper(BlobFiles& files, Catalogue& catalogue, Clock& clock, Pool& pool)
        : files_(files), catalogue_(catalogue), clock_(clock), pool_(pool) {}

    // Says that the blob may have lost its last record.
    void add_loose(std::string hash);
    // Both return how many they removed.
    Task<Result<int>> remove_expired_records();
    Task<Result<int>> remove_loose_blobs();

private:
    Task<Result<int>> scan();
    Task<Result<bool>> remove_if_loose(std::string hash);

    BlobFiles& files_;
    Catalogue& catalogue_;
    Clock& clock_;
    Pool& pool_;

    Mutex mutex_;
    std::set<std::string> loose_ COMFYD_GUARDED_BY(mutex_);
    std::optional<Time> scanned_at_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::assets
