// How many requests a store gets at once: fewer when it says that it is too many, and slowly more
// again. Belongs to one executor.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/task.hpp"

namespace comfyd::assets {

class Gate {
public:
    Gate(Executor executor, std::size_t inside_max)
        : inside_max_(inside_max), limit_(inside_max), changed_(executor) {}

    // False: the calling task was cancelled. Else leave() must follow.
    Task<bool> enter() {
        while (inside_ >= limit_) {
            const bool woken = co_await changed_.wait();
            if (!woken) {
                co_return false;
            }
        }
        ++inside_;
        co_return true;
    }
    void leave() {
        --inside_;
        changed_.notify();
    }

    void slow_down() {
        limit_ = std::max<std::size_t>(1, limit_ / 2);
        went_well_ = 0;
    }
    // One more after as many successes as there may be requests.
    void went_well() {
        if (limit_ < inside_max_ && ++went_well_ >= limit_) {
            ++limit_;
            went_well_ = 0;
        }
    }
    std::size_t limit() const { return limit_; }

private:
    const std::size_t inside_max_;
    std::size_t limit_;
    std::size_t inside_ = 0;
    std::size_t went_well_ = 0;
    Signal changed_;
};

}  // namespace comfyd::assets
