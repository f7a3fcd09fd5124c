// A bulk: one workflow that is to be run with many sets of parameters, asked for at once and told
// of as one. Clients know it as a batch (/v2/batches); inside, that word is taken by jobs that
// share a run. Plain values and the only ways in which they change; no I/O, no clock.
//
// Each set is an item, which becomes a job when its turn comes: only so many jobs of a bulk are
// under way at a time. An item is given the id of its job before that is submitted, so that after a
// crash it can be seen whether it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

using BulkId = Id<struct BulkTag>;

inline constexpr int kBulkItemsInACommit = 256;

enum class BulkState {
    loading,  // its items are being stored; nothing runs before all are
    running,
    cancelling,  // jobs of it have not ended yet
    completed,   // every item has ended, well or not
    cancelled,
};
std::string_view to_string(BulkState state);
std::optional<BulkState> parse_bulk_state(std::string_view text);
constexpr bool has_ended(BulkState state) {
    return state >= BulkState::completed;
}

enum class ItemState {
    waiting,
    running,  // it has a job, or is about to
    completed,
    failed,
    cancelled,
};
std::string_view to_string(ItemState state);
std::optional<ItemState> parse_item_state(std::string_view text);

struct ItemCounts {
    int total = 0;
    int running = 0;
    int completed = 0;
    int failed = 0;
    int cancelled = 0;

    int waiting() const { return total - running - completed - failed - cancelled; }
    void move(ItemState from, ItemState to);
    bool operator==(const ItemCounts&) const = default;

private:
    int* count_of(ItemState state);  // nullptr: it is not counted by itself
};

// A file that the job of an item has made.
struct BulkOutput {
    AssetId asset;
    std::string name;  // as the worker gave it
    std::string content_type;
    std::uint64_t size_bytes = 0;
    std::string hash;
    std::optional<std::uint32_t> crc32{};  // nullopt: until somebody asks for an archive

    bool operator==(const BulkOutput&) const = default;
};

struct BulkItem {
    int index = 0;          // its place in the bulk, from 0
    std::string custom_id;  // the client's own name for it; empty: none
    std::string params;     // JSON text of an object
    ItemState state = ItemState::waiting;
    std::optional<JobId> job{};
    std::vector<BulkOutput> outputs{};
    std::optional<Failure> failure{};
};

// The webhook that came with a bulk, among those who are told of its end.
inline constexpr std::string_view kOwnWebhookOfBulk;

// The end of a bulk is told again and again until it is heard.
struct BulkNews {
    Time due{};
    int attempts = 0;
    std::string error{};                                          // of the latest attempt
    std::vector<std::string> to{std::string(kOwnWebhookOfBulk)};  // who has not heard it yet

    bool operator==(const BulkNews&) const = default;
};

struct Bulk {
    BulkId id;
    std::string tenant;
    std::string dialect;  // which API it came by
    BulkState state = BulkState::loading;
    bool paused = false;  // nothing is started; what runs goes on
    ItemCounts counts{};
    Time created_at{};
    std::optional<Time> ended_at{};
    json::object about{};  // what its dialect shows of it again
    std::string idempotency_key{
    };  // empty: none. Unique per tenant for as long as the bulk is kept
    std::string request_hash{};
    bool has_webhook = false;
    std::optional<BulkNews> news{};
    int revision = 0;  // counts changes; the store refuses a change of a stale one

    // Somebody has to do something about it: not where it is paused and nothing of it runs.
    bool is_open() const {
        const bool rests = paused && state == BulkState::running && counts.running == 0;
        return (!has_ended(state) && !rests) || news;
    }
};

// A bulk after a change, with its items that changed: all or nothing is stored.
struct BulkChange {
    Bulk bulk;
    std::vector<BulkItem> added{};
    std::vector<BulkItem> moved{};  // their state, job, outputs and failure
};

// A Result is Code::conflict where the state does not allow it.

Result<BulkChange> add_items(const Bulk& bulk, std::vector<BulkItem> items);
// loading -> running
Result<BulkChange> finish_loading(const Bulk& bulk, Time now);
Result<BulkChange> pause(const Bulk& bulk);
Result<BulkChange> resume(const Bulk& bulk);
// loading or running -> cancelling; nullopt: it is cancelled or has ended already.
std::optional<BulkChange> cancel(const Bulk& bulk, Time now);
// Failed items of a bulk that runs or has ended wait again, as new jobs.
Result<BulkChange> retry_items(const Bulk& bulk, std::vector<BulkItem> failed);
// The item after it, and the state that it had before. The bulk ends with the last of them.
struct ItemMove {
    ItemState from;
    BulkItem after;
};
BulkChange move_items(const Bulk& bulk, std::vector<ItemMove> moves, Time now);
// What became of an item's job; nullopt: it has not ended.
std::optional<BulkItem> settle_item(BulkItem item, const Job& job);
// Items of which something more is known, in the same state.
BulkChange note_items(const Bulk& bulk, std::vector<BulkItem> items);
BulkChange note_news(const Bulk& bulk, std::optional<BulkNews> news);

}  // namespace comfyd::jobs
