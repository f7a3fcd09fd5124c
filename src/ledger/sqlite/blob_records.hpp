// The tables blobs and blob_removals: assets/blob_records.hpp. There is one writer, so what it
// finds within a transaction stays so until its end; no record needs to be locked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assets/blob_records.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

// What a new record of an asset needs.
struct BlobNeed {
    const std::string& hash;
    std::uint64_t size_bytes = 0;
    const std::string& store;  // where it is to be; empty: here
    std::uint64_t generation =
        0;                 // under which its bytes have just come in here; 0: they were here
    bool is_kept = false;  // its bytes are in the table contents
};
// Sees to it that there is a record, which is not doomed, where the asset is to be.
Result<> need_blob(Session& session, const BlobNeed& need);
// An asset over this content has gone.
Result<> look_at_blobs(Session& session, const std::string& hash);

struct HoldBlob {
    using Value = bool;
    std::string hash;
    std::string store;
    Time until;

    std::size_t bytes() const { return 128; }
    Result<bool> operator()(Session& session);
};
struct DoomBlobs {
    using Value = int;
    Time now;
    Time goes_at;
    int limit;

    std::size_t bytes() const { return 64; }
    Result<int> operator()(Session& session);
};
struct TakeOutBlobs {
    using Value = int;
    Time now;
    Time again;
    int limit;

    std::size_t bytes() const { return 64; }
    Result<int> operator()(Session& session);
};
struct EndRemoval {
    using Value = void;
    assets::BlobRemoval removal;

    std::size_t bytes() const { return 128; }
    Result<> operator()(Session& session);
};
struct PostponeRemoval {
    using Value = void;
    assets::BlobRemoval removal;
    Time at;
    std::string error;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};
struct EnterLeftovers {
    using Value = int;
    std::vector<assets::BlobRecord> found;
    Time goes_at;

    std::size_t bytes() const { return 64 + 256 * found.size(); }
    Result<int> operator()(Session& session);
};
struct BeginUpload {
    using Value = void;
    assets::BlobRecord record;
    Time at;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};
struct EndUpload {
    using Value = void;
    assets::BlobRecord record;
    std::string instead_of;
    Time now;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};
struct PostponeUpload {
    using Value = void;
    assets::BlobRecord record;
    Time at;
    std::string error;

    std::size_t bytes() const { return 512; }
    Result<> operator()(Session& session);
};
struct NoteUpload {
    using Value = void;
    assets::BlobRecord record;
    std::string note;

    std::size_t bytes() const { return 256 + note.size(); }
    Result<> operator()(Session& session);
};
struct GiveUpBlob {
    using Value = void;
    assets::BlobRecord record;
    Time goes_at;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};
struct SetStorageClass {
    using Value = void;
    assets::BlobRecord record;

    std::size_t bytes() const { return 256; }
    Result<> operator()(Session& session);
};

Result<std::vector<assets::BlobRecord>> find_blobs(Database& db, const std::string& hash);
Result<std::vector<assets::BlobRecord>> find_blobs_in(
    Database& db,
    const std::string& store,
    const std::optional<assets::BlobRecord>& after,
    int limit
);
Result<std::vector<assets::BlobRemoval>> find_removals(Database& db, Time now, int limit);
Result<std::vector<assets::BlobRecords::Upload>> find_uploads(Database& db, Time now, int limit);
Result<assets::BlobRecords::Waiting> count_waiting(Database& db);

}  // namespace comfyd::ledger::sqlite
