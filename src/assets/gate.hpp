// How many requests a store gets at once: fewer when it says that it is too many, and slowly more
// again. Belongs to one executor, and outlives the passes that it gives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/task.hpp"

namespace comfyd::assets {

class Gate {
public:
    Gate(Executor executor, std::size_t inside_max)
        : inside_max_(inside_max), limit_(inside_max), changed_(executor) {}

    // Whoever holds it is inside.
    class Pass {
    public:
        explicit Pass(Gate& gate) : gate_(&gate) { ++gate.inside_; }
        Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
        Pass& operator=(Pass&&) = delete;
        ~Pass() {
            if (gate_ != nullptr) {
                --gate_->inside_;
                gate_->changed_.notify();
            }
        }

    private:
        Gate* gate_;
    };

    // Nullopt: the calling task was cancelled.
    Task<std::optional<Pass>> enter() {
        while (inside_ >= limit_) {
            const bool woken = co_await changed_.wait();
            if (!woken) {
                co_return std::nullopt;
            }
        }
        co_return Pass(*this);
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

private:
    const std::size_t inside_max_;
    std::size_t limit_;
    std::size_t inside_ = 0;
    std::size_t went_well_ = 0;
    Signal changed_;
};

}  // namespace comfyd::assets
