// Brings contents to the stores that they are meant for.
//
// Owned by the store. What waits stands in the ledger (blob_records.hpp), so nothing is lost by a
// restart or by a store that is away for days: it is tried again, later and later. Meanwhile the
// bytes are served from where they are. Members may be awaited on any executor, by one at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assets/blob_stores.hpp"
#include "assets/incoming.hpp"
#include "assets/store.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"

namespace comfyd::assets {

class Uploader {
public:
    // All outlive it. `inbox`: where bytes are put together that lie in another store elsewhere.
    Uploader(const BlobStores& stores, Catalogue& catalogue, Inbox& inbox, Clock& clock, Pool& pool)
        : stores_(stores), catalogue_(catalogue), inbox_(inbox), clock_(clock), pool_(pool) {}

    // All that is due; how many contents were brought to their store.
    Task<Result<int>> run();
    // One, now, from where it is. Under which key it lies then. Code::hash_mismatch: what lies
    // there is not what it was.
    Task<Result<std::string>> bring(BlobRecord record);

private:
    struct Round {
        std::vector<BlobRecords::Upload> due;
        std::size_t next = 0;
        int done = 0;
        std::optional<Error> failure{};
    };
    Task<> work_off(Round& round);
    Task<Result<bool>> try_one(BlobRecords::Upload upload);

    // Bytes at hand, for as long as this lives.
    struct AtHand {
        Source source;
        std::unique_ptr<Incoming> fetched{};
    };
    Task<Result<AtHand>> find_source(BlobRecord record);
    Task<Result<AtHand>> take_from(BlobRecord from);
    Task<Result<AtHand>> fetch(BlobRecord from, BlobStore& store);

    const BlobStores& stores_;
    Catalogue& catalogue_;
    Inbox& inbox_;
    Clock& clock_;
    Pool& pool_;
    std::map<std::string, Time> away_until_;  // stores that failed lately
};

}  // namespace comfyd::assets
