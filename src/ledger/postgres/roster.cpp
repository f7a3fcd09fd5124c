#include "ledger/postgres/roster.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kSignIn[] =
    "INSERT INTO nodes (node, about) VALUES ($1, $2) ON CONFLICT (node) DO UPDATE SET "
    "seen_at = clock_timestamp(), about = excluded.about "
    "RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::int8";
// What another node takes from the list at the same time is left to it: nobody waits.
constexpr char kForget[] =
    "DELETE FROM nodes WHERE node IN (SELECT node FROM nodes "
    "WHERE seen_at < clock_timestamp() - $1 * interval '1 millisecond' FOR UPDATE SKIP LOCKED)";
constexpr char kSignOut[] = "DELETE FROM nodes WHERE node = $1";
constexpr char kAll[] =
    "SELECT node, about, (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::int8 "
    "FROM nodes ORDER BY first_seen_at, node";

}  // namespace

bool SignIn::join(Batch& batch) {
    place_ = batch.add({kSignIn, {node_, about_}});
    batch.add({kForget, {cluster::kRosterKeeps}});
    return true;
}

void SignIn::conclude(const Batch& batch) {
    outcome.emplace(from_unix_ms(batch.answer(place_)[0].integer(0)));
}

bool SignOut::join(Batch& batch) {
    batch.add({kSignOut, {node_}});
    return true;
}

Statement find_roster() {
    return {kAll};
}

Result<cluster::RosterEntry> read_roster_entry(const Row& row) {
    cluster::RosterEntry entry;
    entry.node.uuid = row.uuid(0);
    auto about = json::parse_object(row.text(1));
    if (!about) {
        return fail(std::move(about.error()));
    }
    entry.about = std::move(*about);
    entry.seen_ago = Millis(row.integer(2));
    return entry;
}

}  // namespace comfyd::ledger::postgres
