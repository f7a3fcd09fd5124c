// How much each sender has used of its rate lately, in memory. What a request needs of several
// rates it gets of all or of none, in one step. It remembers a bounded number of senders: who sent
// longest ago is forgotten first, and has its whole burst again. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/lru_map.hpp"
#include "base/mutex.hpp"
#include "limits/gcra.hpp"

namespace comfyd::limits {

struct Bucket {
    std::string name;  // whose
    Rate rate;
};

// The bid of each bucket, in their order; allowed when all fit.
struct Weighed {
    std::vector<Bid> bids;

    bool fits() const;
    // The one with the longest wait, or else with the least that remains. REQUIRES: some.
    std::size_t tightest() const;
};

class Meter {
public:
    explicit Meter(std::size_t senders_max = 65'536) : tats_(senders_max) {}

    Weighed take(const std::vector<Bucket>& buckets, double cost, std::int64_t now);
    // What take() would say.
    Weighed look(const std::vector<Bucket>& buckets, double cost, std::int64_t now) const;
    std::size_t size() const;

private:
    Weighed weigh_all(const std::vector<Bucket>& buckets, double cost, std::int64_t now) const
        COMFYD_REQUIRES(mutex_);

    mutable Mutex mutex_;
    LruMap<std::int64_t> tats_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::limits
