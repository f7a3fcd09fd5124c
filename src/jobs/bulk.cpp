#include "jobs/bulk.hpp"

#include <array>
#include <utility>

namespace comfyd::jobs {
namespace {

constexpr std::array<std::string_view, 5> kBulkStates{
    "loading", "running", "cancelling", "completed", "cancelled"
};
constexpr std::array<std::string_view, 5> kItemStates{
    "waiting", "running", "completed", "failed", "cancelled"
};

template <class State>
std::optional<State> parse(const std::array<std::string_view, 5>& names, std::string_view text) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == text) {
            return static_cast<State>(i);
        }
    }
    return std::nullopt;
}

BulkChange next(const Bulk& bulk) {
    BulkChange change{bulk};
    ++change.bulk.revision;
    return change;
}

tl::unexpected<Error> not_now(const Bulk& bulk, const char* what) {
    return fail(
        Code::conflict,
        "batch " + bulk.id.to_string() + " is " + std::string(to_string(bulk.state)) +
            " and cannot be " + what,
        {{"status", std::string(to_string(bulk.state))}}
    );
}

// With the last of its items.
void end_if_done(Bulk& bulk, Time now) {
    const bool may_end = bulk.state == BulkState::running || bulk.state == BulkState::cancelling;
    if (!may_end || bulk.counts.waiting() > 0 || bulk.counts.running > 0) {
        return;
    }
    // What all ended by itself before the wish to cancel could be met, is complete.
    const bool is_complete =
        bulk.state == BulkState::running || (bulk.counts.cancelled == 0 && bulk.counts.total > 0);
    bulk.state = is_complete ? BulkState::completed : BulkState::cancelled;
    bulk.ended_at = now;
    if (bulk.has_webhook) {
        bulk.news = BulkNews{.due = now};
    }
}

}  // namespace

std::string_view to_string(BulkState state) {
    return kBulkStates[static_cast<std::size_t>(state)];
}
std::optional<BulkState> parse_bulk_state(std::string_view text) {
    return parse<BulkState>(kBulkStates, text);
}
std::string_view to_string(ItemState state) {
    return kItemStates[static_cast<std::size_t>(state)];
}
std::optional<ItemState> parse_item_state(std::string_view text) {
    return parse<ItemState>(kItemStates, text);
}

int* ItemCounts::count_of(ItemState state) {
    switch (state) {
        case ItemState::waiting:
            return nullptr;
        case ItemState::running:
            return &running;
        case ItemState::completed:
            return &completed;
        case ItemState::failed:
            return &failed;
        case ItemState::cancelled:
            break;
    }
    return &cancelled;
}

void ItemCounts::move(ItemState from, ItemState to) {
    if (int* before = count_of(from)) {
        --*before;
    }
    if (int* after = count_of(to)) {
        ++*after;
    }
}

Result<BulkChange> add_items(const Bulk& bulk, std::vector<BulkItem> items) {
    if (bulk.state != BulkState::loading) {
        return not_now(bulk, "given further items");
    }
    BulkChange change = next(bulk);
    change.bulk.counts.total += static_cast<int>(items.size());
    change.added = std::move(items);
    return change;
}

Result<BulkChange> finish_loading(const Bulk& bulk, Time now) {
    if (bulk.state != BulkState::loading) {
        return not_now(bulk, "started");
    }
    BulkChange change = next(bulk);
    change.bulk.state = BulkState::running;
    end_if_done(change.bulk, now);
    return change;
}

Result<BulkChange> pause(const Bulk& bulk) {
    if (bulk.state != BulkState::loading && bulk.state != BulkState::running) {
        return not_now(bulk, "paused");
    }
    BulkChange change = next(bulk);
    change.bulk.paused = true;
    return change;
}

Result<BulkChange> resume(const Bulk& bulk) {
    if (bulk.state != BulkState::loading && bulk.state != BulkState::running) {
        return not_now(bulk, "resumed");
    }
    BulkChange change = next(bulk);
    change.bulk.paused = false;
    return change;
}

std::optional<BulkChange> cancel(const Bulk& bulk, Time now) {
    if (bulk.state != BulkState::loading && bulk.state != BulkState::running) {
        return std::nullopt;
    }
    BulkChange change = next(bulk);
    change.bulk.state = BulkState::cancelling;
    change.bulk.paused = false;
    end_if_done(change.bulk, now);
    return change;
}

Result<BulkChange> retry_items(const Bulk& bulk, std::vector<BulkItem> failed) {
    if (bulk.state != BulkState::running && bulk.state != BulkState::completed) {
        return not_now(bulk, "retried");
    }
    BulkChange change = next(bulk);
    for (BulkItem& item : failed) {
        change.bulk.counts.move(item.state, ItemState::waiting);
        item.state = ItemState::waiting;
        item.job.reset();
        item.outputs.clear();
        item.failure.reset();
    }
    change.moved = std::move(failed);
    change.bulk.state = BulkState::running;
    change.bulk.ended_at.reset();
    change.bulk.news.reset();
    return change;
}

BulkChange move_items(const Bulk& bulk, std::vector<ItemMove> moves, Time now) {
    BulkChange change = next(bulk);
    for (ItemMove& move : moves) {
        change.bulk.counts.move(move.from, move.after.state);
        change.moved.push_back(std::move(move.after));
    }
    end_if_done(change.bulk, now);
    return change;
}

std::optional<BulkItem> settle_item(BulkItem item, const Job& job) {
    if (!is_terminal(job.state)) {
        return std::nullopt;
    }
    if (job.state == State::completed) {
        item.state = ItemState::completed;
        for (const Output& output : job.outputs) {
            item.outputs.push_back(
                {output.asset,
                 output.name,
                 output.content_type,
                 output.size_bytes,
                 output.hash,
                 output.crc32}
            );
        }
        return item;
    }
    item.state = job.state == State::cancelled ? ItemState::cancelled : ItemState::failed;
    item.failure = job.failure;
    return item;
}

BulkChange note_items(const Bulk& bulk, std::vector<BulkItem> items) {
    BulkChange change = next(bulk);
    change.moved = std::move(items);
    return change;
}

BulkChange note_news(const Bulk& bulk, std::optional<BulkNews> news) {
    BulkChange change = next(bulk);
    change.bulk.news = std::move(news);
    return change;
}

}  // namespace comfyd::jobs
