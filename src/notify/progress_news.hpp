// Progress that webhooks want to hear of and that is still to be sent: of each job the newest
// snapshot only, at most one in an interval. It is not stored, and a later change of the job makes
// it worthless. Bounded; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"
#include "notify/channel.hpp"

namespace comfyd::notify {

class ProgressNews {
public:
    static constexpr std::size_t kJobsMax = 4096;  // of further ones nothing is told

    struct News {
        jobs::Job job;
        Target target;
        jobs::Event event;
    };

    explicit ProgressNews(Millis interval) : interval_(interval) {}

    // True when nothing of the job was waiting: take_due() has more to look at than before.
    bool put(News news, Time now);
    // The job has changed with this event; what it told before is not sent any more.
    void drop(const JobId& job, std::uint64_t sequence);

    // What may be sent now, but for jobs that are `busy`.
    using Busy = std::function<bool(const JobId&)>;
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
    std::unordered_map<JobId, Entry> entries_ COMFYD_GUARDED_BY(mutex_
    );  // of jobs lately told of, too
};

}  // namespace comfyd::notify
