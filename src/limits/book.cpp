#include "limits/book.hpp"

#include <utility>

namespace comfyd::limits {

Book::Book(const auth::DirectoryBoard& directory, const Tiers& tiers, std::string otherwise)
    : directory_(directory), tiers_(tiers), otherwise_(std::move(otherwise)) {}

Allowance Book::of(std::string_view tenant, std::string_view token_tier) const {
    const auto now = directory_.now();  // whose tenant is looked at below
    const std::string before = token_tier.empty() ? heard(tenant) : std::string();
    return tiers_.resolve(
        now->find_tenant(tenant), token_tier.empty() ? before : token_tier, otherwise_
    );
}

std::string Book::tier_of(std::string_view tenant, std::string_view token_tier) const {
    const auto now = directory_.now();
    const std::string before = token_tier.empty() ? heard(tenant) : std::string();
    return std::string(tier_that_counts(
        now->find_tenant(tenant), token_tier.empty() ? before : token_tier, otherwise_
    ));
}

void Book::hear(std::string_view tenant, std::string_view token_tier) {
    const Lock lock(mutex_);
    heard_.use(tenant) = token_tier;
    has_heard_ = true;
}

std::string Book::heard(std::string_view tenant) const {
    if (!has_heard_.load(std::memory_order_relaxed)) {
        return {};
    }
    const Lock lock(mutex_);
    const std::string* tier = heard_.find(tenant);
    return tier == nullptr ? std::string() : *tier;
}

}  // namespace comfyd::limits
