#include <algorithm>
#include <numeric>
#include <utility>

#include "autoscale/decide.hpp"

namespace comfyd::autoscale {

std::vector<std::size_t> cheapest_first(
    const std::vector<Offer>& offers, const Starts& starts, double load_s, double work_s
) {
    std::vector<std::size_t> order(offers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const bool are_priced = std::ranges::all_of(offers, [](const Offer& offer) {
        return offer.usd_per_hour.has_value();
    });
    if (!are_priced) {
        return order;
    }
    std::vector<double> costs;
    for (const Offer& offer : offers) {
        const double run_s = work_s / (offer.speed > 0 ? offer.speed : 1);
        const double start_s = starts.seconds(offer.place, 0.5);
        costs.push_back(*offer.usd_per_hour * (start_s + load_s + run_s));
    }
    std::ranges::sort(order, {}, [&costs](std::size_t at) { return std::pair(costs[at], at); });
    return order;
}

}  // namespace comfyd::autoscale
