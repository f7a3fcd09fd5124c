#include "limits/gcra.hpp"

#include <algorithm>
#include <cmath>

namespace comfyd::limits {
namespace {

constexpr double kMinute = 60e6;
constexpr double kIntervalMax = 1e15;  // some thirty years
constexpr double kCostMax = 1'000;

}  // namespace

Rate per_minute(double limit) {
    const double interval = std::clamp(kMinute / limit, 1.0, kIntervalMax);
    const double burst = std::max(std::floor(kMinute / interval), 1.0);
    return {
        static_cast<std::int64_t>(interval),
        static_cast<std::int64_t>(interval) * static_cast<std::int64_t>(burst)
    };
}

std::int64_t step_of(const Rate& rate, double cost) {
    const auto step = static_cast<std::int64_t>(
        std::ceil(std::clamp(cost, 0.0, kCostMax) * static_cast<double>(rate.interval))
    );
    return std::min(step, rate.tolerance);
}

Bid weigh(const Rate& rate, std::int64_t tat, std::int64_t now, double cost) {
    const std::int64_t begin = std::clamp(tat, now, now + rate.tolerance);
    const std::int64_t after = begin + step_of(rate, cost);
    Bid bid;
    bid.wait = std::max<std::int64_t>(after - now - rate.tolerance, 0);
    bid.fits = bid.wait == 0;
    bid.tat = after;
    const std::int64_t used = (bid.fits ? after : begin) - now;
    const std::int64_t left = rate.tolerance - used;
    bid.remaining = left / rate.interval;
    bid.next = used == 0 ? 0 : rate.interval - left % rate.interval;
    return bid;
}

}  // namespace comfyd::limits
