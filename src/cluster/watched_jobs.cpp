#include "cluster/watched_jobs.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::cluster {

bool WatchedJobs::add(
    const JobId& job, const std::shared_ptr<events::Subscription>& listener, bool is_all_ours
) {
    auto [entry, is_new] = jobs_.try_emplace(job);
    Watched& watched = entry->second;
    if (is_new) {
        // Whoever watches reads the past itself; how much of it there was, nobody can say here, and
        // where a client wants to go on may be anywhere.
        watched.is_trusted = is_all_ours;
    }
    watched.listeners.push_back(listener);
    return is_new;
}

void WatchedJobs::forget_the_gone() {
    for (auto& [job, watched] : jobs_) {
        std::erase_if(watched.listeners, [](const auto& listener) { return listener.expired(); });
    }
    std::erase_if(jobs_, [](const auto& entry) {
        return entry.second.listeners.empty() && !entry.second.is_reading;
    });
}

void WatchedJobs::doubt_all() {
    for (auto& [job, watched] : jobs_) {
        watched.is_trusted = false;
    }
}

WatchedJobs::Verdict WatchedJobs::judge(const Told::Head& head, const jobs::Event& event) {
    const auto found = jobs_.find(head.id);
    if (found == jobs_.end()) {
        return Verdict::skip;
    }
    Watched& watched = found->second;
    const bool is_next = watched.revision && *watched.revision + 1 == head.revision;
    if (!event.is_durable()) {
        if (watched.is_reading) {
            return Verdict::skip;
        }
        // Outputs are told before the stored event that the job has had already.
        const bool is_before = event.sequence < head.sequence && is_next;
        return watched.is_trusted || head.sequence <= watched.sequence || is_before ? Verdict::tell
                                                                                    : Verdict::read;
    }
    if (event.sequence <= watched.sequence) {
        return Verdict::skip;
    }
    if (!watched.is_reading && (watched.is_trusted || is_next)) {
        watched.sequence = event.sequence;
        watched.revision = head.revision;
        return Verdict::tell;
    }
    watched.last = head;
    return Verdict::read;
}

std::optional<std::uint64_t> WatchedJobs::begin_reading(const JobId& job) {
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) {
        return std::nullopt;
    }
    Watched& watched = found->second;
    if (watched.is_reading) {
        watched.has_more = true;
        return std::nullopt;
    }
    watched.is_reading = true;
    watched.has_more = false;
    return watched.sequence;
}

WatchedJobs::Read WatchedJobs::end_reading(
    const JobId& job, std::vector<jobs::Event> stored, bool is_all_ours
) {
    Read read;
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) {
        return read;
    }
    Watched& watched = found->second;
    watched.is_reading = false;
    if (!stored.empty()) {
        watched.revision.reset();
    }
    for (jobs::Event& event : stored) {
        watched.sequence = std::max(watched.sequence, event.sequence);
        read.news.push_back(std::make_shared<const jobs::Event>(std::move(event)));
    }
    if (watched.last && watched.last->sequence == watched.sequence) {
        watched.revision = watched.last->revision;
    }
    watched.last.reset();
    watched.is_trusted = is_all_ours && !watched.has_more;
    read.again = std::exchange(watched.has_more, false);
    return read;
}

void WatchedJobs::fail_reading(const JobId& job) {
    if (const auto found = jobs_.find(job); found != jobs_.end()) {
        found->second.is_reading = false;
    }
}

std::vector<jobs::Heard> WatchedJobs::doubtful() const {
    std::vector<jobs::Heard> heard;
    for (const auto& [job, watched] : jobs_) {
        if (!watched.is_trusted && !watched.is_reading) {
            heard.push_back({job, watched.sequence});
        }
    }
    return heard;
}

void WatchedJobs::trust(const jobs::Heard& heard) {
    const auto found = jobs_.find(heard.job);
    if (found != jobs_.end() && !found->second.is_reading &&
        found->second.sequence == heard.sequence) {
        found->second.is_trusted = true;
    }
}

std::vector<JobId> WatchedJobs::ids() const {
    std::vector<JobId> ids;
    ids.reserve(jobs_.size());
    for (const auto& [job, watched] : jobs_) {
        ids.push_back(job);
    }
    return ids;
}

bool WatchedJobs::want_previews() const {
    return std::ranges::any_of(jobs_, [](const auto& entry) {
        return std::ranges::any_of(entry.second.listeners, [](const auto& weak) {
            const auto listener = weak.lock();
            return listener && listener->options().previews;
        });
    });
}

}  // namespace comfyd::cluster
