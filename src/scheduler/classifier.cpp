#include "scheduler/classifier.hpp"

#include <algorithm>
#include <cmath>

namespace comfyd::scheduler {
namespace {

constexpr double kAdjustmentMax = 0.2;  // of any factor but the tier

Factor weighed(std::string name, double weight, std::string reason) {
    weight = std::clamp(weight, -1.0, 1.0);
    return Factor{std::move(name), weight, 1 + kAdjustmentMax * weight, std::move(reason)};
}

Factor time_factor(const std::optional<double>& expected) {
    const std::string name = "execution_time_estimate";
    if (!expected) {
        return weighed(name, 0, "not known");
    }
    if (*expected < 30) {
        return weighed(name, 0.3, "expected to take less than 30 s");
    }
    if (*expected > 300) {
        return weighed(name, -0.2, "expected to take more than 5 min");
    }
    return weighed(name, 0, "expected to take 30 s to 5 min");
}

// What leaves room for others goes a little sooner; what needs nearly a whole GPU, later.
Factor resource_factor(const std::optional<double>& part) {
    const std::string name = "resource_requirements";
    if (!part) {
        return weighed(name, 0, "not known");
    }
    if (*part < 0.25) {
        return weighed(name, 0.2, "needs less than a quarter of the largest GPU's memory");
    }
    if (*part > 0.8) {
        return weighed(name, -0.2, "needs more than 80 % of the largest GPU's memory");
    }
    return weighed(name, 0, "needs an ordinary part of a GPU's memory");
}

Factor cache_factor(const std::optional<double>& part) {
    const std::string name = "cache_availability";
    if (!part) {
        return weighed(name, 0, "not known");
    }
    return weighed(
        name,
        0.5 * std::clamp(*part, 0.0, 1.0),
        *part > 0 ? "a worker has its models loaded" : "no worker has its models loaded"
    );
}

Factor quota_factor(const std::optional<double>& left) {
    const std::string name = "user_quota_remaining";
    if (!left) {
        return weighed(name, 0, "no quota");
    }
    if (*left < 0.1) {
        return weighed(name, -0.5, "less than a tenth of the quota is left");
    }
    return weighed(name, 0, "enough of the quota is left");
}

}  // namespace

std::string_view to_string(Tier tier) {
    switch (tier) {
        case Tier::basic:
            return "basic";
        case Tier::pro:
            return "pro";
        case Tier::enterprise:
            break;
    }
    return "enterprise";
}

std::optional<Tier> parse_tier(std::string_view text) {
    for (const Tier tier : {Tier::basic, Tier::pro, Tier::enterprise}) {
        if (text == to_string(tier)) {
            return tier;
        }
    }
    return std::nullopt;
}

Classification classify(const Circumstances& circumstances) {
    Classification result;
    const double tier = circumstances.tier == Tier::basic ? 1.0
                        : circumstances.tier == Tier::pro ? 1.5
                                                          : 2.0;
    result.factors.push_back(
        Factor{"tier", 0, tier, "the tier is " + std::string(to_string(circumstances.tier))}
    );
    result.factors.push_back(time_factor(circumstances.expected_seconds));
    result.factors.push_back(resource_factor(circumstances.memory_part));
    result.factors.push_back(cache_factor(circumstances.cached_part));
    result.factors.push_back(quota_factor(circumstances.quota_left));
    result.score = std::clamp(circumstances.base_priority, 1, 10);
    for (const Factor& factor : result.factors) {
        result.score *= factor.multiplier;
    }
    // A factor of exactly 1 must not cost a step because of rounding.
    result.priority = std::clamp(static_cast<int>(std::floor(result.score + 1e-9)), 1, 10);
    return result;
}

}  // namespace comfyd::scheduler
