// The port to where the bytes of assets are: a folder of this machine, a bucket, a drive.
//
// What is under a key never changes, and a key is written once and removed once: content that comes
// again after its key was given up gets another one (blob_key.hpp). So every operation may be
// repeated after a lost answer, and a removal that arrives late harms nobody. Which keys there are,
// and who needs them, is not known here but in the ledger (blob_records.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

// How soon bytes must be at hand, and how dear keeping them may be. A store that has no such
// classes takes them all for the first.
enum class StorageClass { standard, archive, glacier };
std::string_view to_string(StorageClass storage_class);

// How an upload in pieces is gone on with after a crash. What a store notes of it may be the right
// to write there: it is never shown.
struct UploadNote {
    std::string last{};  // of an earlier try; empty: there was none
    // Durable when it returns. Awaited on the store's executor; empty: notes are not kept.
    std::function<Task<Result<>>(std::string note)> keep{};
};

// Bytes that go into a store.
struct Source {
    // The memory, or the file, which lies still until put() has returned.
    std::variant<std::filesystem::path, std::shared_ptr<const std::string>> bytes;
    std::uint64_t size_bytes = 0;
    std::string hash;  // "blake3:<64 hex digits>"
    std::string content_type{};
    StorageClass storage_class = StorageClass::standard;
    // The file may be moved instead of copied; it is on disk already.
    bool may_move = false;
    UploadNote note{};
};

// An address outside that serves the bytes to whoever has it, for a while.
struct Redirect {
    std::string url;
    std::optional<Time> expires_at{};  // nullopt: never
};
// To be had by read() only.
struct Streamed {};
// On its way back from where it takes hours: it was asked for, and is to be asked for again.
struct Restoring {};
using Place = std::variant<std::filesystem::path, Redirect, Streamed, Restoring>;

// What an answer from elsewhere should say, as ours would.
struct LinkTerms {
    Millis life = std::chrono::hours(1);
    std::string content_type{};
    std::string content_disposition{};
};

// Members may be awaited on any executor, any number at once, and end early with Code::cancelled.
// What may pass by itself (an outage, a full disk, a refusal for now) is Code::storage_unavailable
// or Code::storage_full; what somebody must set right is Code::config_invalid. Messages hold no
// credentials and no signed addresses.
class BlobStore {
public:
    virtual ~BlobStore() = default;

    // Makes ready what it needs. Blocks; before everything else. Fails for what no waiting cures: a
    // store elsewhere that is merely away opens.
    virtual Result<> open() = 0;

    // Durable and whole when this returns; before that nobody sees it. Returns the key under which
    // it is found again: the given one, unless the store makes names of its own. What an earlier
    // try has left under the key is replaced.
    virtual Task<Result<std::string>> put(std::string key, Source source) = 0;
    // Where clients get the bytes. A store may answer without having looked whether they are there;
    // nullopt when it has, and they are not.
    virtual Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms) = 0;
    // A part of the bytes: `length` of them from `first` on, fewer at the end. Callers take no more
    // than a few MiB at a time. Code::not_found; Code::output_unavailable while it is Restoring.
    virtual Task<Result<std::string>> read(
        std::string key, std::uint64_t first, std::uint64_t length
    ) = 0;
    // Done as well when there was nothing.
    virtual Task<Result<>> remove(std::string key) = 0;
    // Done as well when it has that class, or the store knows none. Code::not_found.
    virtual Task<Result<>> change_class(std::string key, StorageClass to) = 0;

    // What there is, for finding what a crash has left: in no particular order, by pages.
    struct Listed {
        std::string key;   // as put() returned it
        std::string name;  // as it was given to put()
        std::uint64_t size_bytes = 0;
        Time modified_at{};
    };
    struct Page {
        std::vector<Listed> blobs;
        std::string next{};  // to be given to list() again; empty: that was all
    };
    // `after`: empty, or Page::next. What is not named as blob_key.hpp does is somebody else's, and
    // is left out.
    virtual Task<Result<Page>> list(std::string after) = 0;
    // Removes what was begun before then, was never ended and is in no list (parts of an upload).
    virtual Task<Result<>> remove_unfinished(Time before) = 0;
};

}  // namespace comfyd::assets
