// Fan-out of job events inside the process.
//
// The Hub lives on the core executor. A Subscription lives on the executor of its listener; events
// are posted to it. A listener that falls behind loses progress snapshots first (only the latest is
// kept) and is cut off when its buffer is full: nobody waits for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"

namespace comfyd::events {

using EventPtr = std::shared_ptr<const jobs::Event>;

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

// Sees every job of the process, for those who show queues and not single jobs. All calls come on
// the core executor.
class Observer {
public:
    virtual ~Observer() = default;
    // It counts as unfinished from now: accepted or retried by its owner just now (`is_new`), or
    // read back at the start.
    virtual void on_job(const jobs::Job& job, bool is_new) = 0;
    // A change that the ledger has.
    virtual void on_change(const jobs::Job& job, const jobs::Event& event) = 0;
    virtual bool wants_remarks(const JobId& job) const = 0;
    virtual void on_remark(const JobId& job, jobs::Remark remark) = 0;
};

class Hub {
public:
    explicit Hub(Executor core) : core_(core) {}

    // Before the first job.
    void observe(std::shared_ptr<Observer> observer) { observer_ = std::move(observer); }
    Observer* observer() const { return observer_.get(); }

    // Both on the core executor.
    void attach(const JobId& job, std::shared_ptr<Subscription> subscription);
    void publish(EventPtr event);
    void end_all(Code reason);
    bool has_listeners(const JobId& job) const;
    // In memory, also those whose listeners have gone and are not yet forgotten: at most as many
    // again, and kTidyAtLeast.
    static constexpr std::size_t kTidyAtLeast = 64;
    std::size_t job_count() const { return by_job_.size(); }

    std::size_t subscription_count() const { return *open_; }

private:
    void forget_the_gone();

    Executor core_;
    std::shared_ptr<Observer> observer_;  // shared with the dialect that made it
    std::unordered_map<JobId, std::vector<std::weak_ptr<Subscription>>> by_job_;
    std::size_t tidy_at_ = kTidyAtLeast;  // jobs in it; then those without a listener go
    std::shared_ptr<std::atomic<std::size_t>> open_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace comfyd::events
