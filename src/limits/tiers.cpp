#include "limits/tiers.hpp"

#include <algorithm>
#include <cmath>

namespace comfyd::limits {
namespace {

std::size_t index_of(std::string_view tier) {
    const auto found = std::ranges::find(auth::kTiers, tier);
    const auto known =
        found == auth::kTiers.end() ? std::ranges::find(auth::kTiers, auth::kLowestTier) : found;
    return static_cast<std::size_t>(known - auth::kTiers.begin());
}

}  // namespace

json::value to_json(double limit) {
    const bool is_whole = limit == std::floor(limit) && limit < 1e15;
    return is_whole ? json::value(static_cast<std::int64_t>(limit)) : json::value(limit);
}

Tiers::Tiers() {
    at("free") = {.requests_per_minute = 10, .running_max = 2, .queued_max = 10};
    at("basic") = {.requests_per_minute = 60, .running_max = 5, .queued_max = 50};
    at("premium") = {.requests_per_minute = 300, .running_max = 20, .queued_max = 500};
    at("pro") = {.requests_per_minute = 600, .running_max = 50, .queued_max = 2'000};
    at("enterprise") = {.requests_per_minute = 3'000, .running_max = 200, .queued_max = 20'000};
}

const Allowance& Tiers::of(std::string_view tier) const {
    return all_[index_of(tier)];
}

Allowance& Tiers::at(std::string_view tier) {
    return all_[index_of(tier)];
}

std::string_view tier_that_counts(
    const auth::Tenant* tenant, std::string_view token_tier, std::string_view otherwise
) {
    if (tenant != nullptr && !tenant->tier.empty()) {
        return tenant->tier;
    }
    return token_tier.empty() ? otherwise : token_tier;
}

Allowance Tiers::resolve(
    const auth::Tenant* tenant, std::string_view token_tier, std::string_view otherwise
) const {
    const std::string_view tier = tier_that_counts(tenant, token_tier, otherwise);
    Allowance allowance = tier.empty() ? Allowance() : of(tier);
    if (tenant == nullptr) {
        return allowance;
    }
    if (tenant->running_max > 0) {
        allowance.running_max = static_cast<double>(tenant->running_max);
    }
    if (tenant->gpu_seconds_per_day > 0) {
        allowance.gpu_seconds_per_day = tenant->gpu_seconds_per_day;
    }
    const auto set = [&](double Allowance::* place, const std::optional<double>& own) {
        allowance.*place = own.value_or(allowance.*place);
    };
    set(&Allowance::requests_per_minute, tenant->requests_per_minute);
    set(&Allowance::queued_max, tenant->queued_max);
    set(&Allowance::stored_mb_max, tenant->stored_mb_max);
    set(&Allowance::gpu_seconds_per_month, tenant->gpu_seconds_per_month);
    set(&Allowance::usd_per_day, tenant->usd_per_day);
    set(&Allowance::usd_per_month, tenant->usd_per_month);
    return allowance;
}

}  // namespace comfyd::limits
