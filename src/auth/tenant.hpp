// What holds for a tenant: its tier, its limits and quotas, what it may use. One form for the
// configuration file, the API and the ledger, and one place where it is checked. A value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/identity_store.hpp"
#include "base/budget.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::auth {

inline constexpr std::array<std::string_view, 5> kTiers{
    "free", "basic", "premium", "pro", "enterprise"
};
bool is_tier(std::string_view word);
inline constexpr std::string_view kLowestTier = "free";

struct Tenant {
    std::string name;
    std::uint64_t revision = 0;  // counts its changes; 0: it is of the configuration
    std::string tier{};          // empty: none was named
    bool disabled = false;       // nothing that shows its keys or tokens is let in

    // Of what all share.
    double weight = 1;  // of its part of the GPU-seconds
    // 0: as its tier has it.
    std::int64_t running_max = 0;    // jobs at a time
    double gpu_seconds_per_day = 0;  // when little of it is left its jobs go later

    // nullopt: as its tier has it; 0: no limit.
    std::optional<double> requests_per_minute{};
    std::optional<double> queued_max{};  // jobs that wait or run
    std::optional<double> stored_mb_max{};
    std::optional<double> gpu_seconds_per_month{};
    std::optional<double> usd_per_day{};
    std::optional<double> usd_per_month{};
    Budget budget{};  // of what its jobs may cost: once it is spent, they wait

    bool reuse = false;  // its jobs may be answered with stored outputs unless they say no
    std::string pool{};  // where a request names none; empty: the first that is allowed, or any
    std::string store{};
    std::string retention{};  // a class of assets/retention_class.hpp; empty: as set for all
    std::vector<std::string> denied_nodes{};    // beside those that are denied to all
    std::vector<std::string> allowed_nodes{};   // in place of those for all; empty: those
    std::vector<std::string> allowed_pools{};   // that its requests may name; empty: all
    std::vector<std::string> allowed_stores{};  // likewise

    // All members but name and revision.
    json::object about() const;
    // As it is with these members changed; null is the default of a member. Code::invalid_argument
    // names the member.
    Result<Tenant> with(const json::object& members) const;

    IdentityRecord to_record() const { return {IdentityKind::tenant, name, revision, about()}; }
    // Members that came with a later version are passed over.
    static Tenant restore(const IdentityRecord& record);
};

// 1 to 128 bytes of UTF-8 without control characters.
bool is_tenant_name(std::string_view name);

}  // namespace comfyd::auth
