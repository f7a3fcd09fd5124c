// Where a job's outputs go and how long they stay (docs/results.md): what the request asks for,
// within what the operator allows, or else what is set for its tenant or for all. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "admission/tenant_rules.hpp"
#include "assets/retention_class.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::admission {

struct KeepingRules {
    struct Store {
        std::string provider;
        std::string bucket{};
        std::set<std::string> tenants{};  // who may ask for it; empty: everybody
    };
    std::map<std::string, Store> stores{};  // beside this server's own, by name
    // Where outputs go; empty: the server's own store.
    std::string store{};
    assets::RetentionClass retention = assets::RetentionClass::standard;
    assets::RetentionRules lives{};
    bool allows_answers = true;  // that hold outputs
};

struct KeepingWish {
    const json::object* storage = nullptr;  // {provider, bucket, path}; null: none
    std::optional<std::string> retention{};
};

// Whether something comes of a wish for a store: else it is passed over, as the operator has none.
bool is_heard(const KeepingRules& rules, const json::object& storage);

// Code::invalid_argument names the stores there are, or the classes. `own`: what is set for the
// tenant; nullptr: nothing.
Result<jobs::Keeping> decide_keeping(
    const KeepingRules& rules,
    const std::string& tenant,
    const TenantRulesPtr& own,
    const KeepingWish& wish
);

}  // namespace comfyd::admission
