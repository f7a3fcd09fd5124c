#include "jobs/alarms.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::jobs {

void Alarms::set(Time at, const JobId& id) {
    jobs_.emplace(std::pair(at + set_back_, id), set_back_);
    changed_.notify();
}

void Alarms::set_queue(std::optional<Time> at) {
    if (at) {
        *at += set_back_;
    }
    if (at && at != queue_) {
        changed_.notify();
    }
    queue_ = at;
}

void Alarms::rest() {
    rests_until_ = pace_.now() + kStoragePause;
    changed_.notify();
}

void Alarms::ring_due(const Ring& ring) {
    const Time now = this->now();
    while (!jobs_.empty() && jobs_.begin()->first.first <= now) {
        const auto due = jobs_.extract(jobs_.begin());
        ring(due.key().second, now - due.mapped());
    }
}

Task<> Alarms::run(Ring ring, std::function<void()> look_at_queue) {
    for (;;) {
        set_back_ += std::max(Millis(0), -jumps_.look());
        ring_due(ring);
        const bool is_rested = rests_until_ && !is_resting();
        if (is_rested) {
            rests_until_.reset();
        }
        if (is_rested || (queue_ && *queue_ <= now())) {
            look_at_queue();
        }
        co_await changed_.wait_for(pause());
        const bool is_over = co_await is_cancelled();
        if (is_over) {
            co_return;
        }
    }
}

Millis Alarms::pause() const {
    Millis least(60'000);
    if (!jobs_.empty()) {
        least = std::min(least, jobs_.begin()->first.first - now());
    }
    if (queue_) {
        least = std::min(least, *queue_ - now());
    }
    if (rests_until_) {
        least = std::min(least, *rests_until_ - pace_.now());
    }
    return std::max(least, Millis(1));
}

}  // namespace comfyd::jobs
