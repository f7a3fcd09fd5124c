#include "ledger/postgres/blob_needs.hpp"

#include "assets/blob_key.hpp"
#include "assets/blob_stores.hpp"

namespace comfyd::ledger::postgres {
namespace {

// What was refused needs nothing.
#define COMFYD_IF_ADDED "EXISTS (SELECT 1 FROM assets a WHERE a.id = n.asset AND a.hash = n.hash)"

constexpr char kHoldAll[] =
    "SELECT 1 FROM blobs WHERE hash = ANY ($1) ORDER BY hash, store, generation FOR KEY SHARE";
// Bytes that have just come in. They are too many when somebody else was faster.
constexpr char kEnterNew[] =
    "INSERT INTO blobs (hash, store, generation, key, size_bytes, state) "
    "SELECT DISTINCT ON (n.hash) n.hash, 'local', n.generation, n.key, n.size_bytes, 1 "
    "FROM unnest($1, $2, $3, $4, $5) AS n (asset, hash, generation, key, size_bytes) "
    "WHERE " COMFYD_IF_ADDED " ORDER BY n.hash, n.generation ON CONFLICT DO NOTHING";
constexpr char kRemoveSurplus[] =
    "INSERT INTO blob_removals (store, key, attempts, due_at) SELECT 'local', n.key, 0, $6 "
    "FROM unnest($1, $2, $3, $4, $5) AS n (asset, hash, generation, key, size_bytes) "
    "WHERE " COMFYD_IF_ADDED
    " AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = n.hash AND b.store = 'local' AND "
    "b.generation = n.generation) ORDER BY n.key ON CONFLICT DO NOTHING";
// From wherever the bytes are: what is doomed stays until it was read.
constexpr char kUploadNeeded[] =
    "INSERT INTO blobs (hash, store, generation, key, size_bytes, state, due_at) "
    "SELECT DISTINCT ON (n.hash, n.store) n.hash, n.store, n.generation, n.key, n.size_bytes, 0, "
    "$7 FROM unnest($1, $2, $3, $4, $5, $6) "
    "AS n (asset, hash, store, generation, key, size_bytes) WHERE " COMFYD_IF_ADDED
    " AND NOT EXISTS (SELECT 1 FROM blobs o WHERE o.hash = n.hash AND o.store = n.store AND "
    "o.state < "
    "2) AND NOT (n.store = 'local' AND EXISTS (SELECT 1 FROM contents c WHERE c.hash = n.hash)) "
    "ORDER BY n.hash, n.store ON CONFLICT DO NOTHING";

}  // namespace

void BlobNeeds::add(const Need& need, Time now) {
    const std::string store(
        need.store.empty() ? assets::kLocalStore : std::string_view(need.store)
    );
    if (need.generation != 0) {
        new_ones_.add(
            need.asset,
            need.hash,
            need.generation,
            assets::make_blob_key(need.hash, need.generation),
            need.size_bytes
        );
    }
    if (need.is_kept && store == assets::kLocalStore) {
        return;
    }
    const std::uint64_t generation = assets::make_generation(now);
    hashes_.add(need.hash);
    needed_.add(
        need.asset,
        need.hash,
        store,
        generation,
        assets::make_blob_key(need.hash, generation, assets::store_folder(store)),
        need.size_bytes
    );
}

Statements BlobNeeds::statements(Time now) const {
    Statements all;
    if (needed_.empty()) {
        return all;
    }
    all.push_back({kHoldAll, {hashes_.value()}});
    if (!new_ones_.empty()) {
        all.push_back(new_ones_.statement(kEnterNew));
        all.push_back(new_ones_.statement(kRemoveSurplus, {now}));
    }
    all.push_back(needed_.statement(kUploadNeeded, {now}));
    return all;
}

}  // namespace comfyd::ledger::postgres
