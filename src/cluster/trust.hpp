// Whether a leader may still act as one: asked before each request that changes a worker, on
// whatever thread sends it. It belongs to one term: once it said no, it says no for ever, and the
// term ends.
#pragma once

#include <atomic>

#include "cluster/boot_clock.hpp"

namespace comfyd::cluster {

class Trust {
public:
    // `clock` outlives it.
    explicit Trust(const BootClock& clock) : clock_(clock) {}

    // No, once kTrust has passed since the latest request for the lease that succeeded was sent, or
    // the session with the database is gone.
    bool holds() const { return clock_.now() < until_.load(std::memory_order_acquire); }
    void set(Millis until) { until_.store(until, std::memory_order_release); }

private:
    const BootClock& clock_;
    std::atomic<Millis> until_{Millis::min()};
};

}  // namespace comfyd::cluster
