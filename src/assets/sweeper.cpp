#include "assets/sweeper.hpp"

#include <limits>
#include <utility>

namespace comfyd::assets {
namespace {

constexpr int kExpiredBatch = 256;
// Most blobs to remove are known from the record that went; the rest (a crash, another process) is
// found by looking at every file, which is done seldom.
constexpr Millis kScanEvery = std::chrono::hours(24);

}  // namespace

void Sweeper::add_loose(std::string hash) {
    const Lock lock(mutex_);
    loose_.insert(std::move(hash));
}

Task<Result<int>> Sweeper::remove_expired_records() {
    int removed = 0;
    for (;;) {
        auto expired = co_await catalogue_.expired(clock_.now(), kExpiredBatch);
        if (!expired) {
            co_return fail(std::move(expired.error()));
        }
        const int before = removed;
        for (const Asset& asset : *expired) {
            auto gone = co_await catalogue_.remove(asset.id);
            if (!gone && gone.error().code != Code::asset_in_use) {
                co_return fail(std::move(gone.error()));
            }
            if (gone && *gone) {
                ++removed;
                add_loose(asset.hash);
            }
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the sweep was stopped");
        }
        if (expired->size() < kExpiredBatch || removed == before) {
            co_return removed;
        }
    }
}

Task<Result<int>> Sweeper::remove_loose_blobs() {
    bool is_scan_due = false;
    std::set<std::string> loose;
    {
        const Lock lock(mutex_);
        for (std::string& hash : catalogue_.take_loose()) {
            loose_.insert(std::move(hash));
        }
        is_scan_due = !scanned_at_ || clock_.now() - *scanned_at_ >= kScanEvery;
        loose = loose_;
    }
    int removed = 0;
    for (const std::string& hash : loose) {
        auto gone = co_await remove_if_loose(hash);
        if (!gone) {
            co_return fail(std::move(gone.error()));
        }
        removed += *gone ? 1 : 0;
    }
    if (is_scan_due) {
        auto found = co_await scan();
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        removed += *found;
    }
    co_return removed;
}

Task<Result<int>> Sweeper::scan() {
    const Time started_at = clock_.now();
    int removed = 0;
    for (unsigned first = 0; first <= std::numeric_limits<std::uint8_t>::max(); ++first) {
        auto old_ones = co_await blobs_.old_ones(static_cast<std::uint8_t>(first));
        if (!old_ones) {
            co_return fail(std::move(old_ones.error()));
        }
        for (const std::string& hash : *old_ones) {
            auto gone = co_await remove_if_loose(hash);
            if (!gone) {
                co_return fail(std::move(gone.error()));
            }
            removed += *gone ? 1 : 0;
        }
    }
    const Lock lock(mutex_);
    scanned_at_ = started_at;
    co_return removed;
}

Task<Result<bool>> Sweeper::remove_if_loose(std::string hash) {
    const bool stop = co_await is_cancelled();
    if (stop) {
        co_return fail(Code::cancelled, "the sweep was stopped");
    }
    auto referenced = co_await catalogue_.is_referenced(hash);
    if (!referenced) {
        co_return fail(std::move(referenced.error()));
    }
    auto removal = Result<HashedBlobs::Removal>(HashedBlobs::Removal::absent);
    if (!*referenced) {
        // Whoever makes a new record after our question has made the blob young before: it stays.
        removal = co_await blobs_.remove_unless_young(hash);
    }
    if (!removal) {
        co_return fail(std::move(removal.error()));
    }
    const Lock lock(mutex_);
    if (*removal == HashedBlobs::Removal::too_young) {
        loose_.insert(std::move(hash));
    } else {
        loose_.erase(hash);
    }
    co_return *removal == HashedBlobs::Removal::removed;
}

}  // namespace comfyd::assets
