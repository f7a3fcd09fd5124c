#include "engine/pool.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace comfyd::engine {
namespace {

constexpr unsigned kThreadsMax = 256;

// Outlives parallel(): a helper that is scheduled late finds nothing left and never touches `part`.
struct Share {
    Share(std::size_t count, const std::function<void(std::size_t)>& function)
        : parts(count), part(function) {}

    // True when this call finished the last part.
    bool take_all() {
        std::size_t finished = 0;
        for (std::size_t i = next.fetch_add(1); i < parts; i = next.fetch_add(1)) {
            part(i);
            ++finished;
        }
        if (finished == 0) {
            return false;
        }
        const Lock lock(mutex);
        done += finished;
        return done == parts;
    }

    const std::size_t parts;
    const std::function<void(std::size_t)>& part;
    std::atomic<std::size_t> next = 0;
    Mutex mutex;
    Condition all_done;
    std::size_t done COMFYD_GUARDED_BY(mutex) = 0;
};

}  // namespace

Pool::Pool(unsigned threads) {
    const unsigned count = std::clamp(threads, 1U, kThreadsMax);
    threads_.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
        threads_.emplace_back([this] { work(); });
    }
}

Pool::~Pool() {
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void Pool::post(std::function<void()> task) {
    {
        const Lock lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
}

void Pool::parallel(std::size_t parts, const std::function<void(std::size_t)>& part) {
    if (parts <= 1 || threads_.size() <= 1) {
        for (std::size_t i = 0; i < parts; ++i) {
            part(i);
        }
        return;
    }
    // Shared with the helpers, which may start after this function has returned.
    const auto share = std::make_shared<Share>(parts, part);
    const std::size_t helpers = std::min(parts, threads_.size()) - 1;
    {
        // In front: work that is under way ends before new nodes begin.
        const Lock lock(mutex_);
        for (std::size_t i = 0; i < helpers; ++i) {
            tasks_.emplace_front([share] {
                if (share->take_all()) {
                    share->all_done.notify_one();
                }
            });
        }
    }
    wake_.notify_all();
    if (!share->take_all()) {
        Lock lock(share->mutex);
        share->all_done.wait(lock, [&share]() COMFYD_REQUIRES(share->mutex) {
            return share->done == share->parts;
        });
    }
}

void Pool::work() {
    while (true) {
        std::function<void()> task;
        {
            Lock lock(mutex_);
            wake_.wait(lock, [this]() COMFYD_REQUIRES(mutex_) {
                return stopping_ || !tasks_.empty();
            });
            if (tasks_.empty()) {
                return;
            }
            task = std::move(tasks_.front());
            tasks_.pop_front();
        }
        task();
    }
}

}  // namespace comfyd::engine
