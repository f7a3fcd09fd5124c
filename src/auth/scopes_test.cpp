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

TEST(Scopes, AreReadByTheirWords) {
    for (const Scope scope : kEvery) {
        EXPECT_EQ(parse_scopes(to_string(scope)), Scopes{scope}) << to_string(scope);
    }
    EXPECT_EQ(parse_scopes("jobs:*"), (Scopes{Scope::jobs_read, Scope::jobs_write}));
    EXPECT_EQ(parse_scopes("*"), kTenantScopes) << "never an operator's";
    for (const char* word : {"", ":*", "jobs", "jobs:", "jobs:all", "JOBS:READ", "admin ", "ad*"}) {
        EXPECT_EQ(parse_scopes(word), std::nullopt) << word;
    }
    Scopes again;
    for (const std::string_view word : words_of(kAllScopes)) {
        again.add(parse_scopes(word).value());
    }
    EXPECT_EQ(again, kAllScopes);
}

}  // namespace
}  // namespace comfyd::auth
