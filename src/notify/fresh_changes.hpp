// Completions that were told of just now, so that their messages need not be read from the ledger
// again. Only what is small, and only the latest: whatever is not here is read.
//
// Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "base/mutex.hpp"
#include "jobs/job.hpp"

namespace comfyd::notify {

class FreshChanges {
public:
    static constexpr std::size_t kKept = 256;
    static constexpr std::size_t kBytesMax = 32 * 1024;  // of what workers and clients wrote

    struct Fresh {
        jobs::Job job;
        jobs::Event event;
    };

    // The job as it is after the event. Of most other events a message is not what the job is then
    // (notify/messages.cpp).
    void put(const jobs::Job& job, const jobs::Event& event);
    // nullptr: it is to be read.
    std::shared_ptr<const Fresh> find(const JobId& job, std::uint64_t sequence) const;
    // It was told.
    void drop(const JobId& job);

private:
    mutable Mutex mutex_;
    std::map<JobId, std::shared_ptr<const Fresh>> kept_ COMFYD_GUARDED_BY(mutex_);
    std::deque<JobId> order_ COMFYD_GUARDED_BY(mutex_);  // as they came; some may be gone
};

}  // namespace comfyd::notify
