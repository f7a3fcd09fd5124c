#include "jobs/alarms.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::jobs {

void Alarms::set(Time at, const JobId& id) {
    jobs_.emplace(at, id);
    changed_.notify();
}

void Alarms::set_queue(std::optional<Time> at) {
    if (at && at != queue_) {
        changed_.notify();
    }
    queue_ = at;
}

void Alarms::rest() {
    rests_until_ = clock_.now() + kStoragePause;
    changed_.notify();
}

Task<> Alarms::run(Ring ring, std::function<void()> look_at_queue) {
    for (;;) {
        const Time now = clock_.now();
        while (!jobs_.empty() && jobs_.begin()->first <= now) {
            const JobId id = jobs_.begin()->second;
            jobs_.erase(jobs_.begin());
            ring(id, now);
        }
        const bool is_rested = rests_until_ && *rests_until_ <= now;
        if (is_rested) {
            rests_until_.reset();
        }
        if (is_rested || (queue_ && *queue_ <= now)) {
            look_at_queue();
        }
        co_await changed_.wait_for(pause(now));
        const bool is_over = co_await is_cancelled();
        if (is_over) {
            co_return;
        }
    }
}

Millis Alarms::pause(Time now) const {
    Millis least(60'000);  // the clock may be set
    if (!jobs_.empty()) {
        least = std::min(least, jobs_.begin()->first - now);
    }
    for (const auto& other : {queue_, rests_until_}) {
        if (other) {
            least = std::min(least, *other - now);
        }
    }
    return std::max(least, Millis(1));
}

}  // namespace comfyd::jobs
