// The worker threads of one engine: whole nodes, and the rows of large pictures.
//
// Any thread may call it. Tasks must not wait for other tasks, except through parallel(), whose
// caller works along and therefore never waits for a thread that is not there.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace comfyd::engine {

class Pool {
public:
    explicit Pool(unsigned threads);
    ~Pool();  // runs what was posted, then joins
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    void post(std::function<void()> task);
    // Calls part(0) .. part(parts - 1), on any threads in any order, and returns when all have
    // returned. `part` must not throw.
    void parallel(std::size_t parts, const std::function<void(std::size_t)>& part);
    std::size_t size() const { return threads_.size(); }

private:
    void work();

    Mutex mutex_;
    Condition wake_;
    std::deque<std::function<void()>> tasks_ COMFYD_GUARDED_BY(mutex_);
    bool stopping_ COMFYD_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

}  // namespace comfyd::engine
