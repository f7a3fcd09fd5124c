// How many jobs wait, by rank: their priority, or 0 of the batch class. For whoever must know it
// without asking the core. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "jobs/job.hpp"

namespace comfyd::jobs {

class Backlog {
public:
    void add(std::size_t rank, std::size_t count = 1) {
        by_rank_[rank].fetch_add(count, std::memory_order_relaxed);
    }
    void take(std::size_t rank, std::size_t count = 1) {
        by_rank_[rank].fetch_sub(count, std::memory_order_relaxed);
    }
    // Those of this rank or a higher one.
    std::size_t at_least(int rank) const {
        std::size_t count = 0;
        for (auto at = static_cast<std::size_t>(rank); at < by_rank_.size(); ++at) {
            count += by_rank_[at].load(std::memory_order_relaxed);
        }
        return count;
    }

private:
    std::array<std::atomic<std::size_t>, kPriorityMax + 1> by_rank_{};
};

}  // namespace comfyd::jobs
