#include "jobs/tenants.hpp"

namespace comfyd::jobs {
namespace {

std::int64_t hour_number(Time time) {
    constexpr std::int64_t kHourMs = 3'600'000;
    return to_unix_ms(time) / kHourMs;
}

}  // namespace

std::string named_tier(const json::object& dialect_data) {
    const auto tier = json::find_string(dialect_data, kTierMember);
    return tier ? tier->value_or("") : "";
}

void Tenants::set(const std::map<std::string, TenantOptions>& options) {
    std::erase_if(tenants_, [&options](const auto& entry) {
        return !options.contains(entry.first);
    });
    for (const auto& [name, given] : options) {
        Tenant& tenant = tenants_[name];
        tenant.tier = given.tier;
        tenant.quota = Millis(static_cast<std::int64_t>(given.gpu_seconds_per_day * 1000));
    }
}

void Tenants::describe(const std::string& name, Time now, scheduler::Circumstances& into) const {
    const auto found = tenants_.find(name);
    if (found == tenants_.end()) {
        return;
    }
    const Tenant& tenant = found->second;
    into.tier = tenant.tier;
    if (tenant.quota <= Millis(0)) {
        return;
    }
    const std::int64_t newest = hour_number(now);
    Millis used{};
    for (const Tenant::Hour& hour : tenant.hours) {
        const bool counts =
            hour.number <= newest && hour.number + static_cast<std::int64_t>(kHours) > newest;
        used += counts ? hour.used : Millis(0);
    }
    into.quota_left =
        1 - static_cast<double>(used.count()) / static_cast<double>(tenant.quota.count());
}

void Tenants::add_used(const std::string& name, Time at, Millis gpu) {
    const auto found = tenants_.find(name);
    const std::int64_t number = hour_number(at);
    if (found == tenants_.end() || found->second.quota <= Millis(0) || number < 0) {
        return;
    }
    Tenant::Hour& hour = found->second.hours[static_cast<std::size_t>(number) % kHours];
    if (hour.number < number) {
        hour = {number, Millis(0)};
    }
    if (hour.number == number) {
        hour.used += gpu;
    }
}

std::vector<std::string> Tenants::with_quota() const {
    std::vector<std::string> names;
    for (const auto& [name, tenant] : tenants_) {
        if (tenant.quota > Millis(0)) {
            names.push_back(name);
        }
    }
    return names;
}

}  // namespace comfyd::jobs
