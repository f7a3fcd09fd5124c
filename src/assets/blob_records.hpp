// Which contents lie in which store under which key, and what is to be done about them. Durable;
// implemented by the ledger room, which also writes a record with every asset that needs one.
//
// A record goes from uploading to live to doomed to gone and never back. A live one that nothing
// refers to is doomed; a doomed one is taken out after a while, and only then its key is removed.
// Whoever adds a reference locks the record: one that is doomed, or gone, is not good enough, and
// the content gets another record, with a key that was never used. So it does not matter how long a
// removal is under way, and nothing that somebody has just referred to is ever removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assets/blob_store.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

// The numbers are stored.
enum class BlobState { uploading = 0, live = 1, doomed = 2 };

struct BlobRecord {
    std::string hash;
    std::string store;  // a name, and behind a slash the folder in it: "main", "main/renders"
    std::uint64_t generation = 0;
    std::string key;
    std::uint64_t size_bytes = 0;
    BlobState state = BlobState::live;
    StorageClass storage_class = StorageClass::standard;
    int attempts = 0;    // uploading: that failed
    std::string error;   // of the latest
    std::string note{};  // uploading: UploadNote::last; in uploads() alone
};

// A key that no record has any more.
struct BlobRemoval {
    std::string store;
    std::string key;
    int attempts = 0;
};

class BlobRecords {
public:
    virtual ~BlobRecords() = default;

    // All of one content, in no particular order.
    virtual Task<Result<std::vector<BlobRecord>>> blobs_of(std::string hash) = 0;
    // Nothing looks at the live record before then: somebody is about to refer to it. False: there
    // is none.
    virtual Task<Result<bool>> hold(std::string hash, std::string store, Time until) = 0;

    // The sweep, step by step. Live records that may have lost their last reference: those that
    // have are doomed, to go at `goes_at`. How many were looked at.
    virtual Task<Result<int>> doom(Time now, Time goes_at, int limit) = 0;
    // Doomed ones whose time has come are taken out, their keys are to be removed. One stays until
    // `again` while it may still be read: nothing else has taken its place. How many were looked
    // at.
    virtual Task<Result<int>> take_out(Time now, Time again, int limit) = 0;
    virtual Task<Result<std::vector<BlobRemoval>>> removals(Time now, int limit) = 0;
    virtual Task<Result<>> removed(BlobRemoval removal) = 0;
    virtual Task<Result<>> remove_later(BlobRemoval removal, Time at, std::string error) = 0;
    // What a store has and no record knows is entered as doomed. How many were not known.
    virtual Task<Result<int>> enter_leftovers(std::vector<BlobRecord> found, Time goes_at) = 0;

    // Records whose bytes are to be brought to their store.
    struct Upload {
        BlobRecord record;
        bool is_needed = true;
    };
    virtual Task<Result<std::vector<Upload>>> uploads(Time now, int limit) = 0;
    // Adds one, to be uploaded at `at`, unless its store has the content or is to get it.
    virtual Task<Result<>> begin_upload(BlobRecord record, Time at) = 0;
    // It is live, under its key. `instead_of`: a store whose assets over this content are now in
    // this one. Other records of the content are looked at soon.
    virtual Task<Result<>> uploaded(BlobRecord record, std::string instead_of, Time now) = 0;
    virtual Task<Result<>> upload_later(BlobRecord record, Time at, std::string error) = 0;
    // For as long as it is uploading.
    virtual Task<Result<>> note_upload(BlobRecord record, std::string note) = 0;
    // Dooms one that is of no use: nothing needs it, or its bytes are not there.
    virtual Task<Result<>> give_up(BlobRecord record, Time goes_at) = 0;

    virtual Task<Result<>> set_storage_class(BlobRecord record) = 0;
    // Live ones of a store, those of its folders too, behind `after`.
    virtual Task<Result<std::vector<BlobRecord>>> blobs_in(
        std::string store, std::optional<BlobRecord> after, int limit
    ) = 0;
    struct Waiting {
        std::uint64_t uploads = 0;
        std::uint64_t removals = 0;
        std::uint64_t upload_bytes = 0;
        std::optional<Time> oldest_upload{};  // since when it waits
    };
    virtual Task<Result<Waiting>> waiting() = 0;
};

}  // namespace comfyd::assets
