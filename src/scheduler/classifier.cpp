#include "scheduler/classifier.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace comfyd::scheduler {
namespace {

constexpr double kAdjustmentMax = 0.2;  // of any factor but the tier
constexpr double kQuickSeconds = 30;
constexpr double kLongSeconds = 300;
constexpr double kSmallPart = 0.25;
constexpr double kLargePart = 0.8;
constexpr double kQuotaLow = 0.1;
constexpr double kCachedWeight = 0.5;
constexpr int kCachedSteps = 10;

// Where each circumstance stands in Grounds::bits.
struct Field {
    unsigned shift;
    unsigned width;
};
constexpr Field kTime{2, 2};
constexpr Field kMemory{4, 2};
constexpr Field kQuota{6, 2};
constexpr Field kCached{8, 4};  // 0: not known, else tenths + 1
constexpr Field kTier{12, 3};

unsigned get(Grounds grounds, Field field) {
    return (grounds.bits >> field.shift) & ((1U << field.width) - 1);
}

void set(Grounds& grounds, Field field, unsigned value) {
    grounds.bits = static_cast<std::uint16_t>(grounds.bits | (value << field.shift));
}

struct Step {
    double weight;
    std::string_view reason;
};
using Steps = std::array<Step, 4>;
constexpr Steps kTimeSteps{{
    {0, "not known"},
    {0.3, "expected to take less than 30 s"},
    {0, "expected to take 30 s to 5 min"},
    {-0.2, "expected to take more than 5 min"},
}};
// What leaves room for others goes a little sooner; what needs nearly a whole GPU, later.
constexpr Steps kMemorySteps{{
    {0, "not known"},
    {0.2, "needs less than a quarter of the largest GPU's memory"},
    {0, "needs an ordinary part of a GPU's memory"},
    {-0.2, "needs more than 80 % of the largest GPU's memory"},
}};
constexpr Steps kQuotaSteps{{
    {0, "no quota"},
    {0, "enough of the quota is left"},
    {-0.5, "less than a tenth of the quota is left"},
    {0, ""},
}};

// 1: below `low`, 3: above `high`, 2: between.
unsigned step_of(double value, double low, double high) {
    return value < low ? 1 : value > high ? 3 : 2;
}

double tier_multiplier(Tier tier) {
    switch (tier) {
        case Tier::free:
        case Tier::basic:
            break;
        case Tier::premium:
        case Tier::pro:
            return 1.5;
        case Tier::enterprise:
            return 2.0;
    }
    return 1.0;
}

Tier tier_of(Grounds grounds) {
    return static_cast<Tier>(get(grounds, kTier));
}

double cached_weight(Grounds grounds) {
    const auto step = static_cast<double>(get(grounds, kCached));
    return step == 0 ? 0 : kCachedWeight * (step - 1) / kCachedSteps;
}

double multiplier(double weight) {
    return 1 + kAdjustmentMax * std::clamp(weight, -1.0, 1.0);
}

double score_of(int base_priority, Grounds grounds) {
    return std::clamp(base_priority, 1, 10) * tier_multiplier(tier_of(grounds)) *
           multiplier(kTimeSteps[get(grounds, kTime)].weight) *
           multiplier(kMemorySteps[get(grounds, kMemory)].weight) *
           multiplier(cached_weight(grounds)) *
           multiplier(kQuotaSteps[get(grounds, kQuota)].weight);
}

int cut(double score) {
    // A factor of exactly 1 must not cost a step because of rounding.
    return std::clamp(static_cast<int>(std::floor(score + 1e-9)), 1, 10);
}

Factor weighed(std::string name, double weight, std::string_view reason) {
    return Factor{std::move(name), weight, multiplier(weight), std::string(reason)};
}

std::string cached_reason(Grounds grounds) {
    const unsigned step = get(grounds, kCached);
    switch (step) {
        case 0:
            return "not known";
        case 1:
            return "no worker has its models loaded";
        case kCachedSteps + 1:
            return "a worker has its models loaded";
        default:
            return "a worker has about " + std::to_string(step - 1) +
                   " tenths of its models loaded";
    }
}

}  // namespace

std::string_view to_string(Tier tier) {
    switch (tier) {
        case Tier::basic:
            return "basic";
        case Tier::free:
            return "free";
        case Tier::premium:
            return "premium";
        case Tier::pro:
            return "pro";
        case Tier::enterprise:
            break;
    }
    return "enterprise";
}

std::optional<Tier> parse_tier(std::string_view text) {
    using enum Tier;
    for (const Tier tier : {free, basic, premium, pro, enterprise}) {
        if (text == to_string(tier)) {
            return tier;
        }
    }
    return std::nullopt;
}

Grounds grounds_of(const Circumstances& circumstances) {
    Grounds grounds;
    set(grounds, kTier, static_cast<unsigned>(circumstances.tier));
    if (circumstances.expected_seconds) {
        set(grounds, kTime, step_of(*circumstances.expected_seconds, kQuickSeconds, kLongSeconds));
    }
    if (circumstances.memory_part) {
        set(grounds, kMemory, step_of(*circumstances.memory_part, kSmallPart, kLargePart));
    }
    if (circumstances.cached_part) {
        const double part = std::clamp(*circumstances.cached_part, 0.0, 1.0);
        set(grounds, kCached, 1 + static_cast<unsigned>(std::lround(part * kCachedSteps)));
    }
    if (circumstances.quota_left) {
        set(grounds, kQuota, *circumstances.quota_left < kQuotaLow ? 2 : 1);
    }
    return grounds;
}

int priority_of(int base_priority, Grounds grounds) {
    return cut(score_of(base_priority, grounds));
}

Classification classify(int base_priority, Grounds grounds) {
    const Tier tier = tier_of(grounds);
    const Step& time = kTimeSteps[get(grounds, kTime)];
    const Step& memory = kMemorySteps[get(grounds, kMemory)];
    const Step& quota = kQuotaSteps[get(grounds, kQuota)];
    Classification result;
    result.factors = {
        Factor{"tier", 0, tier_multiplier(tier), "the tier is " + std::string(to_string(tier))},
        weighed("execution_time_estimate", time.weight, time.reason),
        weighed("resource_requirements", memory.weight, memory.reason),
        weighed("cache_availability", cached_weight(grounds), cached_reason(grounds)),
        weighed("user_quota_remaining", quota.weight, quota.reason),
    };
    result.score = score_of(base_priority, grounds);
    result.priority = cut(result.score);
    return result;
}

Classification classify(const Circumstances& circumstances) {
    return classify(circumstances.base_priority, grounds_of(circumstances));
}

}  // namespace comfyd::scheduler
