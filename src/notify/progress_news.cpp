#include "notify/progress_news.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::notify {

bool ProgressNews::put(News news, Time now) {
    const Lock lock(mutex_);
    auto found = entries_.find(news.thread());
    if (found == entries_.end()) {
        if (entries_.size() >= kThreadsMax) {
            std::erase_if(entries_, [now](const auto& entry) {
                return !entry.second.newest && entry.second.due <= now;
            });
        }
        if (entries_.size() >= kThreadsMax) {
            return false;
        }
        found = entries_.emplace(news.thread(), Entry{nullptr, now}).first;
    }
    Entry& entry = found->second;
    const bool is_first = entry.newest == nullptr;
    entry.newest = std::make_shared<const News>(std::move(news));
    return is_first;
}

void ProgressNews::drop(const JobId& job, std::uint64_t sequence) {
    const Lock lock(mutex_);
    for (auto at = entries_.lower_bound({job, ""}); at != entries_.end() && at->first.job == job;
         ++at) {
        if (at->second.newest && at->second.newest->event.sequence < sequence) {
            at->second.newest.reset();
        }
    }
}

std::vector<std::shared_ptr<const ProgressNews::News>> ProgressNews::take_due(
    Time now, const Busy& busy
) {
    const Lock lock(mutex_);
    std::vector<std::shared_ptr<const News>> taken;
    for (auto at = entries_.begin(); at != entries_.end();) {
        auto& [thread, entry] = *at;
        if (entry.due > now || busy(thread)) {
            ++at;
        } else if (!entry.newest) {
            at = entries_.erase(at);
        } else {
            taken.push_back(std::exchange(entry.newest, nullptr));
            entry.due = now + interval_;
            ++at;
        }
    }
    return taken;
}

std::optional<Time> ProgressNews::next_due() const {
    const Lock lock(mutex_);
    std::optional<Time> soonest;
    for (const auto& [thread, entry] : entries_) {
        if (entry.newest) {
            soonest = std::min(soonest.value_or(entry.due), entry.due);
        }
    }
    return soonest;
}

}  // namespace comfyd::notify
