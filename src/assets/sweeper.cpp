#include "assets/sweeper.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "assets/back_off.hpp"
#include "assets/blob_key.hpp"
#include "base/log.hpp"

namespace comfyd::assets {
namespace {

constexpr int kStep = 256;
constexpr int kSharingMax = 1'000;
// A crash between storing bytes and recording them leaves a blob that no record knows. Finding it
// means looking at every key, which is done seldom: after a start, once more when what the crash
// before it may have left is old enough to be told from what is on its way, and daily.
constexpr Millis kLookEvery = std::chrono::hours(24);
constexpr BackOff kRemovalBackOff{std::chrono::seconds(5), std::chrono::hours(1)};

Task<Result<>> check_stopped() {
    const bool stop = co_await is_cancelled();
    co_return stop ? fail(Code::cancelled, "the sweep was stopped") : Result<>();
}

}  // namespace

Task<Result<int>> Sweeper::sweep() {
    auto records = co_await remove_expired_records();
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    auto moved = co_await move_records();
    if (!moved) {
        co_return fail(std::move(moved.error()));
    }
    auto given_up = co_await give_up_loose_blobs();
    if (!given_up) {
        co_return fail(std::move(given_up.error()));
    }
    auto keys = co_await remove_keys();
    if (!keys) {
        co_return fail(std::move(keys.error()));
    }
    auto looked = co_await look_for_leftovers();
    if (!looked) {
        co_return fail(std::move(looked.error()));
    }
    co_return *records + *keys;
}

Task<Result<int>> Sweeper::remove_expired_records() {
    int removed = 0;
    std::optional<Asset> after;
    for (;;) {
        auto expired = co_await catalogue_.expired(clock_.now(), after, kStep);
        if (!expired) {
            co_return fail(std::move(expired.error()));
        }
        for (Asset& asset : *expired) {
            auto gone = co_await catalogue_.remove(asset.id);
            if (!gone && gone.error().code != Code::asset_in_use) {
                co_return fail(std::move(gone.error()));
            }
            removed += gone && *gone ? 1 : 0;
            after = std::move(asset);
        }
        auto going = co_await check_stopped();
        if (!going) {
            co_return fail(std::move(going.error()));
        }
        if (expired->size() < kStep) {
            co_return removed;
        }
    }
}

Task<Result<>> Sweeper::move_records() {
    std::optional<Asset> after;
    for (;;) {
        auto moving = co_await catalogue_.moving(clock_.now(), after, kStep);
        if (!moving) {
            co_return fail(std::move(moving.error()));
        }
        for (Asset& asset : *moving) {
            after = asset;
            auto moved = co_await move(std::move(asset));
            if (!moved && moved.error().code == Code::cancelled) {
                co_return moved;
            }
            if (!moved) {  // one store that is away holds up no other
                log::warning(
                    "an asset could not be moved to cheaper storage",
                    {{"asset", after->id.to_string()},
                     {"store", after->store},
                     {"error", moved.error().message}}
                );
            }
        }
        auto going = co_await check_stopped();
        if (!going || moving->size() < kStep) {
            co_return going;
        }
    }
}

// Shared content follows the one that needs it soonest: the last to move on takes it along.
Task<Result<>> Sweeper::move(Asset asset) {
    const Time now = clock_.now();
    const auto wanted = [&](const Asset& of) {
        return options_.retention.storage_class(
            of.retention.value_or(RetentionClass::standard), now - of.created_at
        );
    };
    auto sharing = co_await catalogue_.sharing(asset.hash, asset.store, kSharingMax);
    if (!sharing) {
        co_return fail(std::move(sharing.error()));
    }
    const StorageClass to = wanted(asset);
    const bool is_last =
        std::ranges::all_of(*sharing, [&](const Asset& other) { return wanted(other) >= to; });
    auto blobs = co_await catalogue_.blobs_of(asset.hash);
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    const auto blob = std::ranges::find_if(*blobs, [&](const BlobRecord& one) {
        return one.store == asset.store && one.state == BlobState::live;
    });
    if (is_last && blob != blobs->end() && blob->storage_class != to) {
        const auto store = stores_.get(blob->store);
        if (!store) {
            co_return fail(store.error());
        }
        auto changed = co_await (*store)->change_class(blob->key, to);
        if (!changed) {
            co_return changed;
        }
        blob->storage_class = to;
        auto noted = co_await catalogue_.set_storage_class(std::move(*blob));
        if (!noted) {
            co_return noted;
        }
    }
    const auto retention = asset.retention.value_or(RetentionClass::standard);
    const auto next = options_.retention.next_move(retention, now - asset.created_at);
    auto moved = co_await catalogue_.moved(
        asset.id, next ? std::optional(asset.created_at + *next) : std::nullopt
    );
    co_return moved;
}

Task<Result<>> Sweeper::give_up_loose_blobs() {
    const Time now = clock_.now();
    for (int looked = kStep; looked >= kStep;) {
        auto doomed = co_await catalogue_.doom(now, now + options_.young, kStep);
        auto going = co_await check_stopped();
        if (!doomed || !going) {
            co_return fail(std::move(doomed ? going.error() : doomed.error()));
        }
        looked = *doomed;
    }
    for (int looked = kStep; looked >= kStep;) {
        auto taken = co_await catalogue_.take_out(now, now + options_.young, kStep);
        auto going = co_await check_stopped();
        if (!taken || !going) {
            co_return fail(std::move(taken ? going.error() : taken.error()));
        }
        looked = *taken;
    }
    co_return Result<>();
}

Task<Result<int>> Sweeper::remove_keys() {
    int removed = 0;
    for (;;) {
        auto due = co_await catalogue_.removals(clock_.now(), kStep);
        if (!due) {
            co_return fail(std::move(due.error()));
        }
        for (BlobRemoval& removal : *due) {
            auto gone = co_await remove_key(std::move(removal));
            if (!gone) {
                co_return fail(std::move(gone.error()));
            }
            removed += *gone ? 1 : 0;
        }
        if (due->size() < kStep) {
            co_return removed;
        }
    }
}

// False: its store would not; it is tried again later.
Task<Result<bool>> Sweeper::remove_key(BlobRemoval removal) {
    auto going = co_await check_stopped();
    if (!going) {
        co_return fail(std::move(going.error()));
    }
    const auto store = stores_.get(removal.store);
    auto gone = store ? Result<>() : fail(store.error());
    if (store) {
        gone = co_await (*store)->remove(removal.key);
    }
    if (!gone && gone.error().code == Code::cancelled) {
        co_return fail(std::move(gone.error()));
    }
    const bool is_gone = gone.has_value();
    auto noted = Result<>();
    if (is_gone) {
        noted = co_await catalogue_.removed(std::move(removal));
    } else {
        const Time at = clock_.now() + kRemovalBackOff.after(removal.attempts);
        noted = co_await catalogue_.remove_later(
            std::move(removal), at, std::move(gone.error().message)
        );
    }
    co_return noted ? Result<bool>(is_gone) : fail(std::move(noted.error()));
}

Task<Result<>> Sweeper::look_for_leftovers() {
    const Time now = clock_.now();
    {
        const Lock lock(mutex_);
        const Millis pause = has_looked_again_ ? kLookEvery : options_.young;
        if (looked_at_ && now - *looked_at_ < pause) {
            co_return Result<>();
        }
    }
    for (const std::string& name : stores_.names()) {
        auto looked = co_await look_for_leftovers_in(name, *stores_.find(name));
        if (!looked && looked.error().code == Code::cancelled) {
            co_return looked;
        }
        if (!looked) {  // a store that is away is looked at tomorrow
            log::warning(
                "a store could not be searched for leftovers",
                {{"store", name}, {"error", looked.error().message}}
            );
        }
    }
    const Lock lock(mutex_);
    has_looked_again_ = looked_at_.has_value();
    looked_at_ = now;
    co_return Result<>();
}

// In small steps, which let writes of others go first.
Task<Result<>> Sweeper::enter_leftovers(std::vector<BlobRecord> found, Time goes_at) {
    for (auto at = found.begin(); at != found.end();) {
        const auto end = at + std::min<std::ptrdiff_t>(kStep, found.end() - at);
        std::vector<BlobRecord> some(std::make_move_iterator(at), std::make_move_iterator(end));
        auto entered = co_await catalogue_.enter_leftovers(std::move(some), goes_at);
        if (!entered) {
            co_return fail(std::move(entered.error()));
        }
        auto going = co_await check_stopped();
        if (!going) {
            co_return going;
        }
        at = end;
    }
    co_return Result<>();
}

Task<Result<>> Sweeper::look_for_leftovers_in(std::string name, BlobStore& store) {
    const Time now = clock_.now();
    auto removed = co_await store.remove_unfinished(now - kLookEvery);
    if (!removed) {
        co_return removed;
    }
    std::string after;
    do {
        auto page = co_await store.list(std::move(after));
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        std::vector<BlobRecord> old;
        for (const BlobStore::Listed& listed : page->blobs) {
            const auto named = parse_blob_key(listed.name);
            if (!named || listed.modified_at > now - options_.young) {
                continue;
            }
            BlobRecord record;
            record.hash = named->hash;
            record.store = named->folder.empty() ? name : name + "/" + named->folder;
            record.generation = named->generation;
            record.key = listed.key;
            record.size_bytes = listed.size_bytes;
            old.push_back(std::move(record));
        }
        auto entered = co_await enter_leftovers(std::move(old), now + options_.young);
        if (!entered) {
            co_return entered;
        }
        after = std::move(page->next);
    } while (!after.empty());
    co_return Result<>();
}

}  // namespace comfyd::assets
