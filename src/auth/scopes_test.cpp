#include "auth/scopes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace comfyd::auth {
namespace {

constexpr std::initializer_list<Scope> kEvery = {
    Scope::jobs_read,
    Scope::jobs_write,
    Scope::assets_read,
    Scope::assets_write,
    Scope::workflows_read,
    Scope::workflows_write,
    Scope::metrics_read,
    Scope::admin,
};

TEST(Scopes, HoldWhatTheyWereGiven) {
    const Scopes some{Scope::jobs_read, Scope::admin};
    for (const Scope scope : kEvery) {
        EXPECT_EQ(some.contain(scope), scope == Scope::jobs_read || scope == Scope::admin)
            << to_string(scope);
        EXPECT_FALSE(Scopes().contain(scope));
        EXPECT_TRUE(kAllScopes.contain(scope));
    }
}

TEST(Scopes, ATenantsOwnDoNotReachOthers) {
    for (const Scope scope : kEvery) {
        const bool is_operators = scope == Scope::metrics_read || scope == Scope::admin;
        EXPECT_EQ(kTenantScopes.contain(scope), !is_operators) << to_string(scope);
    }
}

TEST(Scopes, EachHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (const Scope scope : kEvery) {
        names.insert(to_string(scope));
    }
    EXPECT_EQ(names.size(), kEvery.size());
    EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace comfyd::auth
