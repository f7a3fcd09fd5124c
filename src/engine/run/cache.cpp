#include "engine/run/cache.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace comfyd::engine {

std::size_t Cache::KeyHash::operator()(const Digest& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
}

std::uint64_t Cache::begin_run(std::vector<Digest> keys) {
    std::vector<SharedResult> dropped;  // freed after the lock
    const Lock lock(mutex_);
    const std::uint64_t run = next_run_++;
    runs_.emplace(run, std::move(keys));
    std::unordered_set<Digest, KeyHash> kept;
    for (const auto& [number, needed] : runs_) {
        kept.insert(needed.begin(), needed.end());
    }
    for (auto at = entries_.begin(); at != entries_.end();) {
        if (kept.contains(at->first)) {
            ++at;
        } else {
            dropped.push_back(std::move(at->second.result));
            at = entries_.erase(at);
        }
    }
    return run;
}

void Cache::end_run(std::uint64_t run) {
    const Lock lock(mutex_);
    runs_.erase(run);
}

SharedResult Cache::find(const Digest& key) const {
    const Lock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.result;
}

void Cache::put(const Digest& key, SharedResult result) {
    const Lock lock(mutex_);
    entries_.insert_or_assign(key, Entry{std::move(result), next_age_++});
}

void Cache::clear() {
    std::unordered_map<Digest, Entry, KeyHash> dropped;  // freed after the lock
    const Lock lock(mutex_);
    dropped.swap(entries_);
}

void Cache::make_room(std::uint64_t bytes) {
    const Lock lock(mutex_);
    std::vector<std::pair<std::uint64_t, Digest>> unused;
    for (const auto& [key, entry] : entries_) {
        // Nobody can take another reference while the lock is held.
        if (entry.result.use_count() == 1) {
            unused.emplace_back(entry.age, key);
        }
    }
    std::ranges::sort(unused);
    for (const auto& [age, key] : unused) {
        if (bytes > memory_.max() || memory_.used() <= memory_.max() - bytes) {
            return;
        }
        entries_.erase(key);
    }
}

}  // namespace comfyd::engine
