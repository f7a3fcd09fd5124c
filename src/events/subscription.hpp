// A subscription to one job: its stored past first, then what comes, without gap or repetition.
//
// Lives on the executor of its listener; events are posted to it. A listener that falls behind
// loses progress snapshots first (only the latest is kept) and is cut off when its buffer is full:
// nobody waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/task.hpp"
#include "events/notice.hpp"

namespace comfyd::events {

struct WatchOptions {
    std::uint64_t since = 0;  // only events with a higher sequence
    bool previews = false;
    Millis progress_interval{250};  // at most one progress event in this time
};

class Subscription : public std::enable_shared_from_this<Subscription> {
public:
    static constexpr std::size_t kBufferMax = 256;

    Subscription(Executor executor, WatchOptions options);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

    // The next event in order. Code::request_timeout: none within `patience` (send a heartbeat and
    // call again); anything else ends the stream: Code::not_found: the job has ended and there is
    // no more; Code::too_many_streams: cut off for being slow; Code::shutting_down;
    // Code::cancelled.
    Task<Result<EventPtr>> next(Millis patience);

    Executor executor() const { return executor_; }
    const WatchOptions& options() const { return options_; }

    // It is one of these until it is destroyed, on whatever thread. Once, before it is listened to.
    void count_in(std::shared_ptr<std::atomic<std::size_t>> open);

    // All on the subscription's executor. Until prime() hands over the stored past, live events are
    // held back.
    void prime(std::vector<EventPtr> past);
    void push(EventPtr event);
    void end(Code reason);

private:
    void deliver(EventPtr event);

    Executor executor_;
    WatchOptions options_;
    Signal changed_;
    bool primed_ = false;
    std::vector<EventPtr> held_;
    std::deque<EventPtr> buffer_;
    EventPtr progress_;  // the latest, not yet delivered
    EventPtr preview_;   // likewise
    std::uint64_t last_sequence_;
    std::chrono::steady_clock::time_point progress_due_{};
    std::optional<Code> ended_;
    std::shared_ptr<std::atomic<std::size_t>> open_;  // null: not counted
};

}  // namespace comfyd::events
