// Who asks, as far as the turn of their jobs depends on it: the tier, and how much of the day's
// GPU-seconds is left. Sums of the last 24 hours, by whole hours. One owner; no clock of its own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "scheduler/classifier.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

struct TenantOptions {
    scheduler::TenantTerms terms{};
    scheduler::Tier tier = scheduler::Tier::basic;
    double gpu_seconds_per_day = 0;  // where little of it is left, jobs go later; 0: no quota
};

// By tenant, and the tier that a token named for it; empty: none did.
using TermsOf = std::function<TenantOptions(const std::string&, const std::string&)>;

// The tier that a token named for the tenant of a job, in its dialect_data.
inline constexpr std::string_view kTierMember = "tier";
std::string named_tier(const json::object& dialect_data);  // empty: none was

class Tenants {
public:
    explicit Tenants(const std::map<std::string, TenantOptions>& options) { set(options); }
    // What was used by those who had a quota before stays known.
    void set(const std::map<std::string, TenantOptions>& options);

    // What is known of the tenant; the rest stays as it is.
    void describe(const std::string& tenant, Time now, scheduler::Circumstances& into) const;
    // What an attempt took. Of tenants without a quota nothing is kept.
    void add_used(const std::string& tenant, Time at, Millis gpu);
    std::vector<std::string> with_quota() const;

private:
    static constexpr std::size_t kHours = 24;

    struct Tenant {
        scheduler::Tier tier = scheduler::Tier::basic;
        Millis quota{};
        // By hour since 1970, in turn; an entry of another hour is out of date.
        struct Hour {
            std::int64_t number = 0;
            Millis used{};
        };
        std::array<Hour, kHours> hours{};
    };

    std::unordered_map<std::string, Tenant> tenants_;
};

}  // namespace comfyd::jobs
