// The time that all nodes agree on: the database's. A node's own clock gives it, less what that was
// found to be ahead. So a deadline, a retry or a claim that one node writes means the same to the
// next, also where one machine's clock is an hour wrong. Any thread.
#pragma once

#include <atomic>

#include "base/time.hpp"

namespace comfyd::cluster {

class SharedClock final : public Clock {
public:
    // `own` outlives it.
    explicit SharedClock(const Clock& own) : own_(own) {}

    Time now() const override { return own_.now() - ahead_.load(std::memory_order_relaxed); }
    const Clock& own() const { return own_; }

    Millis ahead() const { return ahead_.load(std::memory_order_relaxed); }
    void set_ahead(Millis ahead) { ahead_.store(ahead, std::memory_order_relaxed); }

private:
    const Clock& own_;
    std::atomic<Millis> ahead_{Millis(0)};
};

}  // namespace comfyd::cluster
