#include "ledger/postgres/blob_records.hpp"

#include <algorithm>

#include "assets/blob_key.hpp"
#include "assets/blob_stores.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr int kLimitMax = 10'000;
constexpr std::size_t kErrorBytesMax = 1024;

#define COMFYD_BLOB_COLUMNS                                                                      \
    "b.hash, b.store, b.generation, b.key, b.size_bytes, b.state, b.storage_class, b.attempts, " \
    "b.error"
// Of a record `b`: an asset is to be there. Here are also those whose own store has not got them.
#define COMFYD_BLOB_IS_NEEDED                                                                      \
    "EXISTS (SELECT 1 FROM assets a WHERE a.hash = b.hash AND (a.store = b.store OR "              \
    "(b.store = 'local' AND (a.store IS NULL OR NOT EXISTS (SELECT 1 FROM blobs t WHERE t.hash = " \
    "a.hash AND t.store = a.store AND t.state = 1)))))"
#define COMFYD_HAS_ANY \
    "EXISTS (SELECT 1 FROM blobs o WHERE o.hash = n.hash AND o.store = n.store AND o.state < 2)"
#define COMFYD_THIS_BLOB "hash = $1 AND store = $2 AND generation = $3"
#define COMFYD_THESE_BLOBS "b.hash = n.hash AND b.store = n.store AND b.generation = n.generation"

// Always written, so that no sweep looks at it before the asset is really gone.
constexpr char kLookAt[] =
    "UPDATE blobs b SET due_at = coalesce(b.due_at, $2) FROM (SELECT hash, store, generation "
    "FROM blobs WHERE hash = ANY ($1) AND state = 1 ORDER BY hash, store, generation "
    "FOR NO KEY UPDATE) n WHERE " COMFYD_THESE_BLOBS;
constexpr char kHold[] =
    "UPDATE blobs SET due_at = $3 WHERE hash = $1 AND store = $2 AND state = 1 RETURNING 1";

constexpr char kLockDue[] =
    "SELECT " COMFYD_BLOB_COLUMNS
    " FROM blobs b WHERE b.state = $1 AND b.due_at <= $2 AND b.due_at IS NOT NULL "
    "ORDER BY b.due_at LIMIT $3 FOR UPDATE SKIP LOCKED";
constexpr char kDoom[] =
    "UPDATE blobs b SET state = 2, doomed_at = $4, due_at = $5 "
    "FROM unnest($1, $2, $3) AS n (hash, store, generation) WHERE " COMFYD_THESE_BLOBS
    " AND NOT " COMFYD_BLOB_IS_NEEDED;
constexpr char kRest[] =
    "UPDATE blobs b SET due_at = NULL FROM unnest($1, $2, $3) AS n (hash, store, generation) "
    "WHERE " COMFYD_THESE_BLOBS " AND b.state = 1";

constexpr char kHeal[] =
    "INSERT INTO blobs (hash, store, generation, key, size_bytes, state, due_at) "
    "SELECT DISTINCT ON (n.hash, n.store) n.hash, n.store, n.next, n.key, b.size_bytes, 0, $6 "
    "FROM unnest($1, $2, $3, $4, $5) AS n (hash, store, generation, next, key) "
    "JOIN blobs b ON " COMFYD_THESE_BLOBS " WHERE " COMFYD_BLOB_IS_NEEDED " AND NOT " COMFYD_HAS_ANY
    " ORDER BY n.hash, n.store ON CONFLICT DO NOTHING";
constexpr char kTakeOut[] =
    "WITH gone AS (DELETE FROM blobs b USING unnest($1, $2, $3) AS n (hash, store, generation) "
    "WHERE " COMFYD_THESE_BLOBS
    " AND NOT EXISTS (SELECT 1 FROM blobs u WHERE u.hash = b.hash AND u.state = 0) "
    "RETURNING b.store, b.key) INSERT INTO blob_removals (store, key, attempts, due_at) "
    "SELECT store, key, 0, $4 FROM gone ON CONFLICT DO NOTHING";
constexpr char kPostpone[] =
    "UPDATE blobs b SET due_at = $4 FROM unnest($1, $2, $3) AS n (hash, store, generation) "
    "WHERE " COMFYD_THESE_BLOBS;

constexpr char kEnterLeftovers[] =
    "INSERT INTO blobs (hash, store, generation, key, size_bytes, state, doomed_at, due_at) "
    "SELECT n.hash, n.store, n.generation, n.key, n.size_bytes, 2, $6, $7 "
    "FROM unnest($1, $2, $3, $4, $5) AS n (hash, store, generation, key, size_bytes) "
    "ORDER BY n.hash, n.store, n.generation ON CONFLICT DO NOTHING RETURNING 1";

constexpr char kRemovals[] =
    "SELECT store, key, attempts FROM blob_removals WHERE due_at <= $1 ORDER BY due_at LIMIT $2";
constexpr char kEndRemoval[] = "DELETE FROM blob_removals WHERE store = $1 AND key = $2";
constexpr char kPostponeRemoval[] =
    "UPDATE blob_removals SET attempts = attempts + 1, due_at = $3, error = $4 "
    "WHERE store = $1 AND key = $2";

constexpr char kBeginUpload[] =
    "INSERT INTO blobs (hash, store, generation, key, size_bytes, state, due_at) "
    "VALUES ($1, $2, $3, $4, $5, 0, $6) ON CONFLICT DO NOTHING";
constexpr char kEndUpload[] =
    "UPDATE blobs SET state = 1, key = $4, due_at = $5, error = NULL, note = NULL "
    "WHERE " COMFYD_THIS_BLOB " AND state = 0";
constexpr char kMoveAssets[] =
    "UPDATE assets SET store = $3 WHERE hash = $1 AND coalesce(store, 'local') = $2";
constexpr char kPostponeUpload[] =
    "UPDATE blobs SET due_at = $4, error = $5, attempts = $6 WHERE " COMFYD_THIS_BLOB
    " AND state = 0";
constexpr char kNoteUpload[] =
    "UPDATE blobs SET note = $4 WHERE " COMFYD_THIS_BLOB " AND state = 0";
constexpr char kGiveUp[] =
    "UPDATE blobs SET state = 2, doomed_at = $4, due_at = $5 WHERE " COMFYD_THIS_BLOB
    " AND state < 2";
constexpr char kSetClass[] = "UPDATE blobs SET storage_class = $4 WHERE " COMFYD_THIS_BLOB;

constexpr char kFindBlobs[] = "SELECT " COMFYD_BLOB_COLUMNS " FROM blobs b WHERE b.hash = $1";
constexpr char kFindIn[] =
    "SELECT " COMFYD_BLOB_COLUMNS
    " FROM blobs b WHERE (b.hash, b.store) > ($2, $3) AND b.state = 1 AND "
    "(b.store = $1 OR b.store LIKE $1 || '/%') ORDER BY b.hash, b.store LIMIT $4";
constexpr char kUploads[] =
    "SELECT " COMFYD_BLOB_COLUMNS ", " COMFYD_BLOB_IS_NEEDED
    ", b.note FROM blobs b WHERE b.state = 0 AND b.due_at <= $1 AND b.due_at IS NOT NULL "
    "ORDER BY b.due_at LIMIT $2";
constexpr char kWaiting[] =
    "SELECT count(*), (SELECT count(*) FROM blob_removals), "
    "coalesce(sum(size_bytes), 0)::int8, min(generation) "
    "FROM blobs WHERE state = 0 AND due_at IS NOT NULL";

// The keys of some records, a column each.
class Keys {
public:
    void add(const assets::BlobRecord& of) { table_.add(of.hash, of.store, of.generation); }
    Statement statement(const char* sql, std::vector<Value> behind = {}) const {
        return table_.statement(sql, std::move(behind));
    }

private:
    Table table_{{kText, kText, kInteger}};
};

Task<tl::expected<std::vector<assets::BlobRecord>, Failure>> lock_due(
    Transaction& transaction, assets::BlobState state, Time now, int limit
) {
    auto found = co_await transaction.ask(
        {{kLockDue, {static_cast<int>(state), now, std::clamp(limit, 1, kLimitMax)}}}
    );
    if (!found) {
        co_return tl::unexpected(std::move(found.error()));
    }
    std::vector<assets::BlobRecord> blobs;
    const Rows& rows = found->at(0);
    for (int i = 0; i < rows.size(); ++i) {
        blobs.push_back(*read_blob(rows[i]));
    }
    co_return blobs;
}

Statement of_blob(const char* sql, const assets::BlobRecord& blob, std::vector<Value> behind) {
    Statement made{sql, {blob.hash, blob.store, blob.generation}};
    std::move(behind.begin(), behind.end(), std::back_inserter(made.values));
    return made;
}

// Notes are sealed for their record.
std::string label_of(const assets::BlobRecord& blob) {
    return blob.hash + "/" + blob.store + "/" + std::to_string(blob.generation);
}

}  // namespace

Statement look_at_blobs(const Array& hashes, Time now) {
    return {kLookAt, {hashes.value(), now}};
}

bool HoldBlob::join(Batch& batch) {
    place_ = batch.add({kHold, {hash_, store_, until_}});
    return true;
}

void HoldBlob::conclude(const Batch& batch) {
    outcome.emplace(!batch.answer(place_).empty());
}

bool PlainWrite::join(Batch& batch) {
    for (const Statement& statement : statements_) {
        batch.add(statement);
    }
    return true;
}

void PlainWrite::conclude(const Batch&) {
    outcome.emplace();
}

PlainWrite end_removal(const assets::BlobRemoval& removal) {
    return PlainWrite({{kEndRemoval, {removal.store, removal.key}}});
}

PlainWrite postpone_removal(const assets::BlobRemoval& removal, Time at, const std::string& error) {
    return PlainWrite(
        {{kPostponeRemoval, {removal.store, removal.key, at, error.substr(0, kErrorBytesMax)}}}
    );
}

PlainWrite begin_upload(const assets::BlobRecord& record, Time at) {
    return PlainWrite({of_blob(kBeginUpload, record, {record.key, record.size_bytes, at})});
}

PlainWrite end_upload(const assets::BlobRecord& record, const std::string& instead_of, Time now) {
    // Looked at once more: the asset may have gone meanwhile.
    Statements statements{of_blob(kEndUpload, record, {record.key, now})};
    if (!instead_of.empty()) {
        statements.push_back({kMoveAssets, {record.hash, instead_of, record.store}});
    }
    Array hashes(kText);
    hashes.add(record.hash);
    statements.push_back(look_at_blobs(hashes, now));
    return PlainWrite(std::move(statements));
}

PlainWrite postpone_upload(const assets::BlobRecord& record, Time at, const std::string& error) {
    return PlainWrite(
        {of_blob(kPostponeUpload, record, {at, error.substr(0, kErrorBytesMax), record.attempts})}
    );
}

PlainWrite note_upload(
    const assets::BlobRecord& record, const std::string& note, const SecretTexts& texts
) {
    const std::string stored = texts.write(note, label_of(record));
    return PlainWrite({of_blob(kNoteUpload, record, {Bytes{stored}})});
}

PlainWrite give_up(const assets::BlobRecord& record, Time now, Time goes_at) {
    return PlainWrite({of_blob(kGiveUp, record, {now, goes_at})});
}

PlainWrite set_storage_class(const assets::BlobRecord& record) {
    return PlainWrite({of_blob(kSetClass, record, {static_cast<int>(record.storage_class)})});
}

Task<Done> DoomBlobs::run(Transaction& transaction) {
    auto due = co_await lock_due(transaction, assets::BlobState::live, now_, limit_);
    if (!due) {
        co_return tl::unexpected(std::move(due.error()));
    }
    Keys keys;
    for (const assets::BlobRecord& blob : *due) {
        keys.add(blob);
    }
    auto done =
        co_await transaction.commit({keys.statement(kDoom, {now_, goes_at_}), keys.statement(kRest)}
        );
    if (done) {
        outcome.emplace(static_cast<int>(due->size()));
    }
    co_return done;
}

Task<Done> TakeOutBlobs::run(Transaction& transaction) {
    auto due = co_await lock_due(transaction, assets::BlobState::doomed, now_, limit_);
    if (!due) {
        co_return tl::unexpected(std::move(due.error()));
    }
    Keys keys;
    Table healed{{kText, kText, kInteger, kInteger, kText}};
    for (const assets::BlobRecord& blob : *due) {
        keys.add(blob);
        const std::uint64_t next = assets::make_generation(now_);
        healed.add(
            blob.hash,
            blob.store,
            blob.generation,
            next,
            assets::make_blob_key(blob.hash, next, assets::store_folder(blob.store))
        );
    }
    auto done = co_await transaction.commit(
        {healed.statement(kHeal, {now_}),
         keys.statement(kTakeOut, {now_}),
         keys.statement(kPostpone, {again_})}
    );
    if (done) {
        outcome.emplace(static_cast<int>(due->size()));
    }
    co_return done;
}

bool EnterLeftovers::join(Batch& batch) {
    Table table{{kText, kText, kInteger, kText, kInteger}};
    for (const assets::BlobRecord& one : found_) {
        table.add(one.hash, one.store, one.generation, one.key, one.size_bytes);
    }
    place_ = batch.add(table.statement(kEnterLeftovers, {now_, goes_at_}));
    return true;
}

void EnterLeftovers::conclude(const Batch& batch) {
    outcome.emplace(batch.answer(place_).size());
}

Statement find_blobs(const std::string& hash) {
    return {kFindBlobs, {hash}};
}

Statement find_blobs_in(
    const std::string& store, const std::optional<assets::BlobRecord>& after, int limit
) {
    const assets::BlobRecord from = after.value_or(assets::BlobRecord{});
    return {kFindIn, {store, from.hash, from.store, std::clamp(limit, 1, kLimitMax)}};
}

Result<assets::BlobRecord> read_blob(const Row& row) {
    assets::BlobRecord blob;
    blob.hash = row.text(0);
    blob.store = row.text(1);
    blob.generation = static_cast<std::uint64_t>(row.integer(2));
    blob.key = row.text(3);
    blob.size_bytes = static_cast<std::uint64_t>(row.integer(4));
    blob.state = static_cast<assets::BlobState>(row.integer(5));
    blob.storage_class = static_cast<assets::StorageClass>(row.integer(6));
    blob.attempts = static_cast<int>(row.integer(7));
    blob.error = row.text(8);
    return blob;
}

Statement find_uploads(Time now, int limit) {
    return {kUploads, {now, std::clamp(limit, 1, kLimitMax)}};
}

// A note that cannot be read is none: the upload begins anew.
Result<assets::BlobRecords::Upload> read_upload(const Row& row, const SecretTexts& texts) {
    auto blob = read_blob(row);
    if (!blob) {
        return fail(std::move(blob.error()));
    }
    if (!row.is_null(10)) {
        blob->note = texts.read(row.bytes(10), label_of(*blob)).value_or("");
    }
    return assets::BlobRecords::Upload{std::move(*blob), row.integer(9) != 0};
}

Statement find_removals(Time now, int limit) {
    return {kRemovals, {now, std::clamp(limit, 1, kLimitMax)}};
}

Result<assets::BlobRemoval> read_removal(const Row& row) {
    return assets::BlobRemoval{row.string(0), row.string(1), static_cast<int>(row.integer(2))};
}

Statement count_waiting() {
    return {kWaiting};
}

assets::BlobRecords::Waiting read_waiting(const Row& row) {
    assets::BlobRecords::Waiting waiting;
    waiting.uploads = static_cast<std::uint64_t>(row.integer(0));
    waiting.removals = static_cast<std::uint64_t>(row.integer(1));
    waiting.upload_bytes = static_cast<std::uint64_t>(row.integer(2));
    if (!row.is_null(3)) {
        waiting.oldest_upload = assets::made_at(static_cast<std::uint64_t>(row.integer(3)));
    }
    return waiting;
}

}  // namespace comfyd::ledger::postgres
