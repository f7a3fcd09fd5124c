// How much of what all share a tenant may use, and the tiers that have a name for it. One table:
// requests, jobs and what they cost are limited by it, and the scheduler ranks by the same names.
// Values.
#pragma once

#include <array>
#include <string_view>

#include "auth/tenant.hpp"

namespace comfyd::limits {

// 0: no limit.
struct Allowance {
    double requests_per_minute = 0;
    double running_max = 0;  // jobs at a time; more wait for their turn
    double queued_max = 0;   // jobs that wait or run; more are refused
    double stored_mb_max = 0;
    double gpu_seconds_per_day = 0;
    double gpu_seconds_per_month = 0;
    double usd_per_day = 0;
    double usd_per_month = 0;

    bool operator==(const Allowance&) const = default;
};

struct AllowanceMember {
    std::string_view name;  // as in the configuration
    double Allowance::* place;
    std::string_view help;
};
inline constexpr std::array<AllowanceMember, 8> kAllowanceMembers{{
    {"requests_per_minute", &Allowance::requests_per_minute, "Requests a minute"},
    {"running_max", &Allowance::running_max, "Jobs at a time; more wait"},
    {"queued_max", &Allowance::queued_max, "Jobs that wait or run; more are refused"},
    {"stored_mb_max", &Allowance::stored_mb_max, "MB of files that are kept"},
    {"gpu_seconds_per_day", &Allowance::gpu_seconds_per_day, "GPU-seconds a day"},
    {"gpu_seconds_per_month", &Allowance::gpu_seconds_per_month, "GPU-seconds a month"},
    {"usd_per_day", &Allowance::usd_per_day, "Dollars a day"},
    {"usd_per_month", &Allowance::usd_per_month, "Dollars a month"},
}};

// As answers show a limit: 60, not 60.0.
json::value to_json(double limit);

class Tiers {
public:
    Tiers();  // as they come; the configuration may change each

    // A name that is none of auth::kTiers is the lowest tier.
    const Allowance& of(std::string_view tier) const;
    Allowance& at(std::string_view tier);

    // What holds for a tenant: its own limits, and for the rest those of its tier. That is the one
    // that was set for it, or else the one its token names, or else `otherwise`; empty: none, which
    // limits nothing. `tenant` nullptr: nothing was set for it.
    Allowance resolve(
        const auth::Tenant* tenant, std::string_view token_tier, std::string_view otherwise
    ) const;

private:
    std::array<Allowance, auth::kTiers.size()> all_;
};

// Which of the three counts.
std::string_view tier_that_counts(
    const auth::Tenant* tenant, std::string_view token_tier, std::string_view otherwise
);

}  // namespace comfyd::limits
