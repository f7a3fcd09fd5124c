#include "limits/meter.hpp"

#include <algorithm>

namespace comfyd::limits {

bool Weighed::fits() const {
    return std::ranges::all_of(bids, &Bid::fits);
}

std::size_t Weighed::tightest() const {
    const auto tighter = [](const Bid& a, const Bid& b) {
        return a.wait != b.wait ? a.wait > b.wait : a.remaining < b.remaining;
    };
    return static_cast<std::size_t>(std::ranges::min_element(bids, tighter) - bids.begin());
}

Weighed Meter::weigh_all(const std::vector<Bucket>& buckets, double cost, std::int64_t now) const {
    Weighed weighed;
    weighed.bids.reserve(buckets.size());
    for (const Bucket& bucket : buckets) {
        const std::int64_t* tat = tats_.find(bucket.name);
        weighed.bids.push_back(weigh(bucket.rate, tat == nullptr ? 0 : *tat, now, cost));
    }
    return weighed;
}

Weighed Meter::take(const std::vector<Bucket>& buckets, double cost, std::int64_t now) {
    const Lock lock(mutex_);
    Weighed weighed = weigh_all(buckets, cost, now);
    if (weighed.fits()) {
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            tats_.use(buckets[i].name) = weighed.bids[i].tat;
        }
    }
    return weighed;
}

Weighed Meter::look(const std::vector<Bucket>& buckets, double cost, std::int64_t now) const {
    const Lock lock(mutex_);
    return weigh_all(buckets, cost, now);
}

std::size_t Meter::size() const {
    const Lock lock(mutex_);
    return tats_.size();
}

}  // namespace comfyd::limits
