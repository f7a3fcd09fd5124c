// What the operator has set for a tenant in place of what holds for all. It may be changed while
// requests are served; who has asked keeps what held then. Any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "assets/retention_class.hpp"
#include "base/mutex.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::admission {

struct TenantRules {
    std::optional<workflow::SecurityPolicy> security{};
    bool reuse = false;  // its jobs may be answered with stored outputs unless they say no
    std::string pool{};  // where a request names none
    std::set<std::string> pools{};  // that a request may name; empty: all
    std::string store{};
    std::set<std::string> stores{};  // that a request may name beside its own; empty: all
    std::optional<assets::RetentionClass> retention{};
};
using TenantRulesPtr = std::shared_ptr<const TenantRules>;

class TenantTable {
public:
    using Rules = std::map<std::string, TenantRules>;  // by tenant

    TenantRulesPtr find(const std::string& tenant) const;  // nullptr: nothing is set for it
    void set(Rules rules);

private:
    mutable Mutex mutex_;
    std::shared_ptr<const Rules> now_ COMFYD_GUARDED_BY(mutex_) = std::make_shared<const Rules>();
};

}  // namespace comfyd::admission
