#include "ledger/sqlite/blob_records.hpp"

#include <algorithm>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/blob_stores.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr int kLimitMax = 10'000;

#define COMFYD_BLOB_COLUMNS                                                                      \
    "b.hash, b.store, b.generation, b.key, b.size_bytes, b.state, b.storage_class, b.attempts, " \
    "b.error"
// Of a record `b`: an asset is to be there. Here are also those whose own store has not got them.
#define COMFYD_BLOB_IS_NEEDED                                                                    \
    "EXISTS (SELECT 1 FROM assets a WHERE a.hash = b.hash AND (a.store = b.store OR "            \
    "(b.store = 'local' AND (a.store IS NULL OR NOT EXISTS (SELECT 1 FROM blobs t WHERE t.hash " \
    "= a.hash AND t.store = a.store AND t.state = 1)))))"
#define COMFYD_THIS_BLOB "hash = ?1 AND store = ?2 AND generation = ?3"

constexpr char kHasAny[] =
    "SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ? AND store = ? AND state < 2)";
constexpr char kHasThis[] = "SELECT EXISTS (SELECT 1 FROM blobs WHERE " COMFYD_THIS_BLOB ")";
constexpr char kInsert[] =
    "INSERT INTO blobs (hash, store, generation, key, size_bytes, state, doomed_at, due_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kAddRemoval[] =
    "INSERT OR IGNORE INTO blob_removals (store, key, attempts, due_at) VALUES (?, ?, 0, ?)";
constexpr char kLookAt[] =
    "UPDATE blobs SET due_at = ?2 WHERE hash = ?1 AND state = 1 AND due_at IS NULL";
constexpr char kHold[] =
    "UPDATE blobs SET due_at = ?3 WHERE hash = ?1 AND store = ?2 AND state = 1 RETURNING 1";

constexpr char kDue[] =
    "SELECT " COMFYD_BLOB_COLUMNS ", " COMFYD_BLOB_IS_NEEDED
    ", b.note FROM blobs b INDEXED BY blobs_due WHERE b.state = ?1 AND b.due_at <= ?2 "
    "ORDER BY b.due_at LIMIT ?3";
constexpr char kRest[] = "UPDATE blobs SET due_at = NULL WHERE " COMFYD_THIS_BLOB;
constexpr char kDoom[] =
    "UPDATE blobs SET state = 2, doomed_at = ?4, due_at = ?5 WHERE " COMFYD_THIS_BLOB;
constexpr char kPostpone[] = "UPDATE blobs SET due_at = ?4 WHERE " COMFYD_THIS_BLOB;
constexpr char kTakeOut[] = "DELETE FROM blobs WHERE " COMFYD_THIS_BLOB;
constexpr char kIsUploading[] = "SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ? AND state = 0)";

constexpr char kRemovals[] =
    "SELECT store, key, attempts FROM blob_removals WHERE due_at <= ? ORDER BY due_at LIMIT ?";
constexpr char kEndRemoval[] = "DELETE FROM blob_removals WHERE store = ? AND key = ?";
constexpr char kPostponeRemoval[] =
    "UPDATE blob_removals SET attempts = attempts + 1, due_at = ?3, error = ?4 "
    "WHERE store = ?1 AND key = ?2";

constexpr char kEndUpload[] =
    "UPDATE blobs SET state = 1, key = ?4, due_at = ?5, error = NULL, note = NULL "
    "WHERE " COMFYD_THIS_BLOB " AND state = 0";
constexpr char kMoveAssets[] =
    "UPDATE assets SET store = ?3 WHERE hash = ?1 AND coalesce(store, 'local') = ?2";
constexpr char kPostponeUpload[] =
    "UPDATE blobs SET due_at = ?4, error = ?5, attempts = ?6 WHERE " COMFYD_THIS_BLOB
    " AND state = 0";
constexpr char kNoteUpload[] =
    "UPDATE blobs SET note = ?4 WHERE " COMFYD_THIS_BLOB " AND state = 0";
constexpr char kGiveUp[] =
    "UPDATE blobs SET state = 2, doomed_at = ?4, due_at = ?5 WHERE " COMFYD_THIS_BLOB
    " AND state < 2";
constexpr char kSetClass[] = "UPDATE blobs SET storage_class = ?4 WHERE " COMFYD_THIS_BLOB;

constexpr char kFindBlobs[] = "SELECT " COMFYD_BLOB_COLUMNS " FROM blobs b WHERE b.hash = ?";
constexpr char kFindIn[] =
    "SELECT " COMFYD_BLOB_COLUMNS
    " FROM blobs b WHERE (b.hash, b.store) > (?2, ?3) AND b.state = 1 AND "
    "(b.store = ?1 OR b.store LIKE ?1 || '/%') ORDER BY b.hash, b.store LIMIT ?4";
constexpr char kCountUploads[] =
    "SELECT count(*), coalesce(sum(size_bytes), 0), min(generation) "
    "FROM blobs INDEXED BY blobs_due WHERE state = 0 AND due_at IS NOT NULL";
constexpr char kCountRemovals[] = "SELECT count(*) FROM blob_removals";

Result<assets::BlobRecord> read_blob(const Query& row) {
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

Result<assets::BlobRecords::Upload> read_needed(const Query& row) {
    auto blob = read_blob(row);
    if (!blob) {
        return fail(std::move(blob.error()));
    }
    blob->note = row.text(10);
    return assets::BlobRecords::Upload{std::move(*blob), row.integer(9) != 0};
}

Result<std::vector<assets::BlobRecords::Upload>> find_due(
    Database& db, assets::BlobState state, Time now, int limit
) {
    Query query(db, kDue);
    query.bind(static_cast<int>(state), now, std::clamp(limit, 1, kLimitMax));
    return all_rows(query, read_needed);
}

template <class... Values>
Result<bool> ask(Database& db, const char* sql, const Values&... values) {
    Query query(db, sql);
    const auto row = query.bind(values...).next();
    if (!row) {
        return fail(row.error());
    }
    return *row && query.integer(0) != 0;
}

template <class... Values>
Result<> change(Session& session, const char* sql, const assets::BlobRecord& of, Values... values) {
    return Query(session.db, sql).bind(of.hash, of.store, of.generation, values...).run();
}

Result<> insert(
    Session& session,
    const assets::BlobRecord& record,
    std::optional<Time> doomed_at,
    std::optional<Time> due_at
) {
    return Query(session.db, kInsert)
        .bind(
            record.hash,
            record.store,
            record.generation,
            record.key,
            record.size_bytes,
            static_cast<int>(record.state),
            doomed_at,
            due_at
        )
        .run();
}

Result<> add_removal(Session& session, const std::string& store, const std::string& key) {
    return Query(session.db, kAddRemoval).bind(store, key, session.now).run();
}

assets::BlobRecord record_for(
    const BlobNeed& need, std::string store, std::uint64_t generation, assets::BlobState state
) {
    assets::BlobRecord record;
    record.hash = need.hash;
    record.key = assets::make_blob_key(need.hash, generation, assets::store_folder(store));
    record.store = std::move(store);
    record.generation = generation;
    record.size_bytes = need.size_bytes;
    record.state = state;
    return record;
}

// Bytes that have just come in. They are too many when somebody else was faster. True: their record
// is what the store needs.
Result<bool> enter_new(Session& session, const BlobNeed& need) {
    const auto record = record_for(
        need, std::string(assets::kLocalStore), need.generation, assets::BlobState::live
    );
    const auto is_entered = ask(session.db, kHasThis, record.hash, record.store, record.generation);
    if (!is_entered || *is_entered) {
        return is_entered ? Result<bool>(false) : is_entered;
    }
    const auto has_other = ask(session.db, kHasAny, record.hash, record.store);
    if (!has_other) {
        return has_other;
    }
    auto entered = *has_other ? add_removal(session, record.store, record.key)
                              : insert(session, record, std::nullopt, std::nullopt);
    return entered ? Result<bool>(true) : fail(std::move(entered.error()));
}

}  // namespace

Result<> need_blob(Session& session, const BlobNeed& need) {
    std::string store(need.store.empty() ? assets::kLocalStore : std::string_view(need.store));
    const bool is_here = store == assets::kLocalStore;
    bool is_met = need.is_kept && is_here;
    if (need.generation != 0) {
        const auto entered = enter_new(session, need);
        if (!entered) {
            return fail(entered.error());
        }
        is_met = is_met || (*entered && is_here);
    }
    if (is_met) {
        return {};
    }
    const auto has_any = ask(session.db, kHasAny, need.hash, store);
    if (!has_any || *has_any) {
        return has_any ? Result<>() : fail(has_any.error());
    }
    // From wherever the bytes are: what is doomed stays until it was read.
    const auto generation = assets::make_generation(session.now);
    const auto record =
        record_for(need, std::move(store), generation, assets::BlobState::uploading);
    return insert(session, record, std::nullopt, session.now);
}

Result<> look_at_blobs(Session& session, const std::string& hash) {
    return Query(session.db, kLookAt).bind(hash, session.now).run();
}

Result<bool> HoldBlob::operator()(Session& session) {
    return ask(session.db, kHold, hash, store, until);
}

Result<int> DoomBlobs::operator()(Session& session) {
    const auto due = find_due(session.db, assets::BlobState::live, now, limit);
    if (!due) {
        return fail(due.error());
    }
    for (const auto& [blob, is_needed] : *due) {
        auto changed =
            is_needed ? change(session, kRest, blob) : change(session, kDoom, blob, now, goes_at);
        if (!changed) {
            return fail(std::move(changed.error()));
        }
    }
    return static_cast<int>(due->size());
}

Result<int> TakeOutBlobs::operator()(Session& session) {
    const auto due = find_due(session.db, assets::BlobState::doomed, now, limit);
    if (!due) {
        return fail(due.error());
    }
    for (const auto& [blob, is_needed] : *due) {
        const auto is_source = ask(session.db, kIsUploading, blob.hash);
        const auto has_other = ask(session.db, kHasAny, blob.hash, blob.store);
        if (!is_source || !has_other) {
            return fail(is_source ? has_other.error() : is_source.error());
        }
        auto changed = Result<>();
        if (is_needed && !*has_other) {  // whoever refers to it came too late to find it live
            const auto next = assets::make_generation(session.now);
            const BlobNeed need{
                .hash = blob.hash, .size_bytes = blob.size_bytes, .store = blob.store
            };
            const auto record = record_for(need, blob.store, next, assets::BlobState::uploading);
            changed = insert(session, record, std::nullopt, now);
        }
        if (!changed) {
            return fail(std::move(changed.error()));
        }
        if (*is_source || (is_needed && !*has_other)) {
            changed = change(session, kPostpone, blob, again);
        } else if (changed = change(session, kTakeOut, blob); changed) {
            changed = add_removal(session, blob.store, blob.key);
        }
        if (!changed) {
            return fail(std::move(changed.error()));
        }
    }
    return static_cast<int>(due->size());
}

Result<> EndRemoval::operator()(Session& session) {
    return Query(session.db, kEndRemoval).bind(removal.store, removal.key).run();
}

Result<> PostponeRemoval::operator()(Session& session) {
    return Query(session.db, kPostponeRemoval).bind(removal.store, removal.key, at, error).run();
}

Result<int> EnterLeftovers::operator()(Session& session) {
    int entered = 0;
    for (assets::BlobRecord& record : found) {
        const auto is_known =
            ask(session.db, kHasThis, record.hash, record.store, record.generation);
        if (!is_known) {
            return fail(is_known.error());
        }
        if (*is_known) {
            continue;
        }
        record.state = assets::BlobState::doomed;
        if (auto inserted = insert(session, record, session.now, goes_at); !inserted) {
            return fail(std::move(inserted.error()));
        }
        ++entered;
    }
    return entered;
}

Result<> BeginUpload::operator()(Session& session) {
    const auto has_any = ask(session.db, kHasAny, record.hash, record.store);
    if (!has_any || *has_any) {
        return has_any ? Result<>() : fail(has_any.error());
    }
    record.state = assets::BlobState::uploading;
    return insert(session, record, std::nullopt, at);
}

Result<> EndUpload::operator()(Session& session) {
    // Looked at once more: the asset may have gone meanwhile.
    if (auto ended = change(session, kEndUpload, record, record.key, now); !ended) {
        return ended;
    }
    if (!instead_of.empty()) {
        auto moved =
            Query(session.db, kMoveAssets).bind(record.hash, instead_of, record.store).run();
        if (!moved) {
            return moved;
        }
    }
    return look_at_blobs(session, record.hash);
}

Result<> PostponeUpload::operator()(Session& session) {
    return change(session, kPostponeUpload, record, at, error, record.attempts);
}

Result<> NoteUpload::operator()(Session& session) {
    return change(session, kNoteUpload, record, note);
}

Result<> GiveUpBlob::operator()(Session& session) {
    return change(session, kGiveUp, record, session.now, goes_at);
}

Result<> SetStorageClass::operator()(Session& session) {
    return change(session, kSetClass, record, static_cast<int>(record.storage_class));
}

Result<std::vector<assets::BlobRecord>> find_blobs(Database& db, const std::string& hash) {
    Query query(db, kFindBlobs);
    query.bind(hash);
    return all_rows(query, read_blob);
}

Result<std::vector<assets::BlobRecord>> find_blobs_in(
    Database& db,
    const std::string& store,
    const std::optional<assets::BlobRecord>& after,
    int limit
) {
    Query query(db, kFindIn);
    const assets::BlobRecord from = after.value_or(assets::BlobRecord{});
    query.bind(store, from.hash, from.store, std::clamp(limit, 1, kLimitMax));
    return all_rows(query, read_blob);
}

Result<std::vector<assets::BlobRemoval>> find_removals(Database& db, Time now, int limit) {
    Query query(db, kRemovals);
    query.bind(now, std::clamp(limit, 1, kLimitMax));
    return all_rows(query, [](const Query& row) -> Result<assets::BlobRemoval> {
        return assets::BlobRemoval{row.string(0), row.string(1), static_cast<int>(row.integer(2))};
    });
}

Result<std::vector<assets::BlobRecords::Upload>> find_uploads(Database& db, Time now, int limit) {
    return find_due(db, assets::BlobState::uploading, now, limit);
}

Result<assets::BlobRecords::Waiting> count_waiting(Database& db) {
    Query uploads(db, kCountUploads);
    const auto row = uploads.bind().next();
    const auto removals = db.integer(kCountRemovals);
    if (!row || !removals) {
        return fail(row ? removals.error() : row.error());
    }
    assets::BlobRecords::Waiting waiting;
    waiting.uploads = static_cast<std::uint64_t>(uploads.integer(0));
    waiting.upload_bytes = static_cast<std::uint64_t>(uploads.integer(1));
    if (!uploads.is_null(2)) {
        waiting.oldest_upload = assets::made_at(static_cast<std::uint64_t>(uploads.integer(2)));
    }
    waiting.removals = static_cast<std::uint64_t>(*removals);
    return waiting;
}

}  // namespace comfyd::ledger::sqlite
