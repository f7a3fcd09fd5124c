// Progress that receivers want to hear of and that is still to be sent: to each of a job the newest
// snapshot only, at most one in an interval. It is not stored, and a later change of the job makes
// it worthless. Bounded; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"
#include "notify/outbox.hpp"
#include "notify/target.hpp"

namespace comfyd::notify {

class ProgressNews {
public:
    static constexpr std::size_t kThreadsMax = 4096;  // of further ones nothing is told

    struct News {
        jobs::Job job;
        Recipient to;
        jobs::Event event;

        Thread thread() const { return {job.id, to.endpoint}; }
    };

    explicit ProgressNews(Millis interval) : interval_(interval) {}

    // True when nothing of the thread was waiting: take_due() has more to look at than before.
    bool put(News news, Time now);
    // The job has changed with this event; what it told before is not sent any more.
    void drop(const JobId& job, std::uint64_t sequence);

    // What may be sent now, but for threads that are `busy`.
    using Busy = std::function<bool(const Thread&)>;
    std::vector<std::shared_ptr<const News>> take_due(Time now, const Busy& busy);
    // When there will be something for take_due(); nullopt: nothing waits.
    std::optional<Time> next_due() const;

private:
    struct Entry {
        std::shared_ptr<const News> newest;
        Time due{};
    };

    const Millis interval_;
    mutable Mutex mutex_;
    std::map<Thread, Entry> entries_ COMFYD_GUARDED_BY(mutex_);  // of those lately told, too
};

}  // namespace comfyd::notify
