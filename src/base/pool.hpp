// Threads for work that blocks or computes for long (disk, codecs, the engine), so that executors
// never do. Declared after the contexts whose coroutines use it, so that its threads are joined
// before those go.
#pragma once

#include <type_traits>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "base/hop.hpp"
#include "base/task.hpp"

namespace comfyd {

class Pool {
public:
    explicit Pool(unsigned threads) : pool_(threads) {}
    ~Pool() { pool_.join(); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // Runs `work` on a thread of the pool and continues the caller on its own executor with the
    // result. The work is not interrupted by cancellation: what it must be told to stop, it is told
    // by other means.
    template <class Work>
    Task<std::invoke_result_t<Work>> run(Work work) {
        return call_on(pool_.get_executor(), std::move(work));
    }

private:
    boost::asio::thread_pool pool_;
};

}  // namespace comfyd
