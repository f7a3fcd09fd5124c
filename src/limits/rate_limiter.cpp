#include "limits/rate_limiter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace comfyd::limits {
namespace {

constexpr std::int64_t kMicros = 1'000'000;

std::int64_t whole_seconds(std::int64_t micros) {
    return (micros + kMicros - 1) / kMicros;
}

// Fields have whole numbers only: one in two minutes is "q=1;w=120".
std::string policy_field(std::string_view name, double per_minute) {
    const bool is_slow = per_minute < 1;
    const auto quota = static_cast<std::int64_t>(is_slow ? 1 : std::floor(per_minute));
    const auto window = static_cast<std::int64_t>(is_slow ? std::ceil(60 / per_minute) : 60);
    return "\"" + std::string(name) + "\";q=" + std::to_string(quota) +
           ";w=" + std::to_string(window);
}

std::vector<Bucket> buckets_of(const Demand& demand, double part) {
    std::vector<Bucket> buckets;
    for (const Demand::Limit& limit : demand.limits) {
        // A node that decides alone lets at least one a minute through.
        const double own = part == 1
                               ? limit.per_minute
                               : std::max(limit.per_minute * part, std::min(limit.per_minute, 1.0));
        buckets.push_back({limit.sender, per_minute(own)});
    }
    return buckets;
}

Verdict verdict_on(const Demand& demand, const Weighed& weighed) {
    const std::size_t nearest = weighed.tightest();
    const Bid& bid = weighed.bids[nearest];
    const Demand::Limit& limit = demand.limits[nearest];
    Verdict verdict;
    verdict.allowed = weighed.fits();
    verdict.limit = limit.per_minute;
    verdict.remaining = bid.remaining;
    verdict.retry_after_s = whole_seconds(bid.wait);
    for (const Demand::Limit& each : demand.limits) {
        verdict.policies += verdict.policies.empty() ? "" : ", ";
        verdict.policies += policy_field(each.policy, each.per_minute);
    }
    if (demand.running_max > 0) {
        verdict.policies +=
            ", \"running\";q=" + std::to_string(static_cast<std::int64_t>(demand.running_max)) +
            ";qu=\"concurrent-requests\"";
    }
    verdict.state = "\"" + std::string(limit.policy) + "\";r=" + std::to_string(bid.remaining) +
                    ";t=" + std::to_string(whole_seconds(bid.fits ? bid.next : bid.wait));
    return verdict;
}

}  // namespace

Error Verdict::error() const {
    return Error(
        Code::rate_limited,
        "too many requests: send the next in " + std::to_string(retry_after_s) + " s",
        {{"allowed", false},
         {"reason", "rate_limit_exceeded"},
         {"retry_after", retry_after_s},
         {"limit", to_json(limit)},
         {"remaining", remaining}}
    );
}

std::optional<Demand> RateLimiter::demand_of(const auth::Caller& caller, double weight) const {
    if (weight <= 0 || caller.tenant.empty()) {
        return std::nullopt;
    }
    if (!caller.tier.empty()) {
        book_.hear(caller.tenant, caller.tier);
    }
    const Allowance allowance = book_.of(caller.tenant, caller.tier);
    if (allowance.requests_per_minute <= 0 && caller.requests_per_minute <= 0) {
        return std::nullopt;
    }
    Demand demand{caller.tenant, {}, weight, allowance.running_max};
    if (allowance.requests_per_minute > 0) {
        demand.limits.push_back({"minute", "t:" + caller.tenant, allowance.requests_per_minute});
    }
    if (caller.requests_per_minute > 0) {
        demand.limits.push_back(
            {"key", "k:" + caller.key_id + ":" + caller.tenant, caller.requests_per_minute}
        );
    }
    return demand;
}

Task<Verdict> RateLimiter::take(Demand demand) {
    std::optional<Weighed> weighed;
    if (shared_ != nullptr) {
        weighed = co_await shared_->take(demand.tenant, buckets_of(demand, 1), demand.weight);
        alone_ += weighed ? 0 : 1;
    }
    if (!weighed) {
        const std::int64_t now = to_unix_ms(clock_.now()) * 1000;
        const double part = 1.0 / static_cast<double>(std::max<std::size_t>(nodes_, 1));
        weighed = meter_.take(buckets_of(demand, part), demand.weight, now);
    }
    Verdict verdict = verdict_on(demand, *weighed);
    refused_ += verdict.allowed ? 0 : 1;
    co_return verdict;
}

}  // namespace comfyd::limits
