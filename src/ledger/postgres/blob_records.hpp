// The tables blobs and blob_removals: assets/blob_records.hpp.
//
// Whoever adds an asset locks all records of its content (FOR KEY SHARE) before it looks whether
// there is one that is not doomed; whoever sweeps locks a record (FOR UPDATE) before it looks
// whether an asset needs it, in a statement of its own, which sees what was committed meanwhile.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "assets/blob_records.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/procedure.hpp"
#include "ledger/postgres/secret_texts.hpp"

namespace comfyd::ledger::postgres {

// Assets over these contents have gone.
Statement look_at_blobs(const Array& hashes, Time now);

class HoldBlob final : public WriteOf<bool> {
public:
    HoldBlob(std::string hash, std::string store, Time until)
        : hash_(std::move(hash)), store_(std::move(store)), until_(until) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    std::string hash_;
    std::string store_;
    Time until_;
    std::size_t place_ = 0;
};

// Statements whose answers nobody waits for.
class PlainWrite final : public WriteOf<void> {
public:
    explicit PlainWrite(Statements statements) : statements_(std::move(statements)) {}
    std::size_t bytes() const override { return 512; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    Statements statements_;
};
PlainWrite end_removal(const assets::BlobRemoval& removal);
PlainWrite postpone_removal(const assets::BlobRemoval& removal, Time at, const std::string& error);
PlainWrite begin_upload(const assets::BlobRecord& record, Time at);
PlainWrite end_upload(const assets::BlobRecord& record, const std::string& instead_of, Time now);
PlainWrite postpone_upload(const assets::BlobRecord& record, Time at, const std::string& error);
PlainWrite note_upload(
    const assets::BlobRecord& record, const std::string& note, const SecretTexts& texts
);
PlainWrite give_up(const assets::BlobRecord& record, Time now, Time goes_at);
PlainWrite set_storage_class(const assets::BlobRecord& record);

class DoomBlobs final : public ProcedureOf<int> {
public:
    DoomBlobs(Time now, Time goes_at, int limit) : now_(now), goes_at_(goes_at), limit_(limit) {}
    Task<Done> run(Transaction& transaction) override;

private:
    Time now_;
    Time goes_at_;
    int limit_;
};
class TakeOutBlobs final : public ProcedureOf<int> {
public:
    TakeOutBlobs(Time now, Time again, int limit) : now_(now), again_(again), limit_(limit) {}
    Task<Done> run(Transaction& transaction) override;

private:
    Time now_;
    Time again_;
    int limit_;
};
class EnterLeftovers final : public WriteOf<int> {
public:
    EnterLeftovers(std::vector<assets::BlobRecord> found, Time now, Time goes_at)
        : found_(std::move(found)), now_(now), goes_at_(goes_at) {}
    std::size_t bytes() const override { return 64 + 256 * found_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    std::vector<assets::BlobRecord> found_;
    Time now_;
    Time goes_at_;
    std::size_t place_ = 0;
};

Statement find_blobs(const std::string& hash);
Statement find_blobs_in(
    const std::string& store, const std::optional<assets::BlobRecord>& after, int limit
);
Result<assets::BlobRecord> read_blob(const Row& row);
Statement find_uploads(Time now, int limit);
Result<assets::BlobRecords::Upload> read_upload(const Row& row, const SecretTexts& texts);
Statement find_removals(Time now, int limit);
Result<assets::BlobRemoval> read_removal(const Row& row);
Statement count_waiting();
assets::BlobRecords::Waiting read_waiting(const Row& row);

}  // namespace comfyd::ledger::postgres
