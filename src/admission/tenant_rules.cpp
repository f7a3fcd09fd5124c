#include "admission/tenant_rules.hpp"

#include <utility>

namespace comfyd::admission {

TenantRulesPtr TenantTable::find(const std::string& tenant) const {
    std::shared_ptr<const Rules> now;
    {
        const Lock lock(mutex_);
        now = now_;
    }
    const auto found = now->find(tenant);
    return found == now->end() ? nullptr : TenantRulesPtr(now, &found->second);
}

void TenantTable::set(Rules rules) {
    auto next = std::make_shared<const Rules>(std::move(rules));
    const Lock lock(mutex_);
    now_.swap(next);  // what held before is freed after the lock
}

}  // namespace comfyd::admission
