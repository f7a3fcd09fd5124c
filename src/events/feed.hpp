// A subscription to many jobs: all of one tenant, or all that there are.
//
// Lives on the executor of its listener. Whoever publishes hands notices over on any thread; the
// listener is woken once for all that have come until it looks. What is told of one job keeps its
// order.
//
// Nobody waits for a listener. One that falls behind loses what the ledger does not have (progress,
// previews, outputs, workers' messages), all of it that waits, and goes on with what comes next. If
// even the stored changes are too many, all that waits is lost and next() tells of the gap: the
// listener reads the jobs anew, which is never older than what it has heard, and of what it then
// hears it leaves out what is not newer (`revision`).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/task.hpp"
#include "events/notice.hpp"

namespace comfyd::events {

struct FeedOptions {
    std::optional<std::string> tenant{};  // nullopt: all
    bool progress = false;                // and outputs, one by one
    bool previews = false;
    std::string messages_of{};  // workers' messages for jobs of this dialect; empty: none
    // So many stored changes may wait, and as many of the others.
    std::size_t waiting_max = 16'384;
};

class Feed : public std::enable_shared_from_this<Feed> {
public:
    // Of pictures and of workers' messages that wait.
    static constexpr std::size_t kUnstoredBytesMax = 32 * 1024 * 1024;

    Feed(Executor executor, FeedOptions options);
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    struct Batch {
        bool has_gap = false;  // stored changes were lost before these
        std::vector<Notice> notices;
    };
    // All that waits now.
    Batch take();
    // Called when something waits, once until it is taken; for those who have no coroutine for it.
    void on_told(std::function<void()> call) { told_ = std::move(call); }
    // It is woken, one way or the other, only when so many wait: for a listener who has nobody to
    // tell. At first for each.
    void wake_at(std::size_t count) COMFYD_EXCLUDES(mutex_);
    // All that waits, as soon as there is something. Code::request_timeout: nothing within
    // `patience` (send a heartbeat and call again); anything else ends the feed:
    // Code::shutting_down, Code::cancelled.
    Task<Result<Batch>> next(std::optional<Millis> patience = std::nullopt);

    Executor executor() const { return executor_; }
    const FeedOptions& options() const { return options_; }

    // Any thread, also those below.
    bool wants(const jobs::Job& job, const Notice& notice) const;
    // Whether its listener is woken for each: it has somebody to tell.
    bool is_awake() COMFYD_EXCLUDES(mutex_);
    // Called, on the listener's executor, when it is from now on.
    void on_awake(std::function<void()> call) COMFYD_EXCLUDES(mutex_);
    void push(Notice notice);
    // Stored changes were lost on their way here. One that is only woken for many is not woken.
    void tell_gap();
    // What waits is still told.
    void end(Code reason);

private:
    Batch empty() COMFYD_REQUIRES(mutex_);
    void keep(Notice notice) COMFYD_REQUIRES(mutex_);
    void drop_unstored() COMFYD_REQUIRES(mutex_);
    void wake();
    std::optional<Code> end_reason();
    Task<bool> wait(std::optional<Millis> patience);

    const Executor executor_;
    const FeedOptions options_;
    // Of the listener's executor.
    Signal changed_;
    std::function<void()> told_;

    Mutex mutex_;
    Batch waiting_ COMFYD_GUARDED_BY(mutex_);
    std::size_t stored_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::size_t unstored_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::size_t unstored_bytes_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::size_t wake_at_ COMFYD_GUARDED_BY(mutex_) = 1;
    bool is_woken_ COMFYD_GUARDED_BY(mutex_) = false;  // since it looked last
    std::optional<Code> ended_ COMFYD_GUARDED_BY(mutex_);
    std::function<void()> awake_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::events
