#include "auth/tenant.hpp"

#include <gtest/gtest.h>

namespace comfyd::auth {
namespace {

TEST(Tenant, IsChangedByItsMembers) {
    const Tenant plain{.name = "acme"};
    const auto changed = plain.with(
        {{"tier", "premium"},
         {"weight", 2},
         {"running_max", 3.0},
         {"usd_per_day", 1.5},
         {"reuse", true},
         {"allowed_nodes", json::array{"A", "B*"}}}
    );
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(changed->tier, "premium");
    EXPECT_EQ(changed->weight, 2);
    EXPECT_EQ(changed->running_max, 3);
    EXPECT_EQ(changed->usd_per_day, 1.5);
    EXPECT_EQ(changed->usd_per_month, std::nullopt);
    EXPECT_EQ(changed->allowed_nodes, (std::vector<std::string>{"A", "B*"}));
    const auto back = changed->with(
        {{"tier", nullptr},
         {"usd_per_day", nullptr},
         {"allowed_nodes", nullptr},
         {"reuse", nullptr},
         {"weight", nullptr},
         {"running_max", nullptr}}
    );
    EXPECT_EQ(back->about(), plain.about());
}

TEST(Tenant, ABudgetIsSetAsAWhole) {
    const Tenant plain{.name = "acme"};
    const auto set = plain.with({{"budget", {{"usd_per_hour", 1.5}, {"usd_per_month", 900}}}});
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(set->budget, (Budget{1.5, 0, 900}));
    EXPECT_EQ(Tenant::restore(set->to_record()).budget, set->budget);
    const auto other = set->with({{"budget", {{"usd_per_day", 2}, {"usd_per_month", nullptr}}}});
    EXPECT_EQ(other->budget, (Budget{0, 2, 0}));
    EXPECT_EQ(other->with({{"budget", nullptr}})->about(), plain.about());
    EXPECT_EQ(other->with({{"budget", json::object()}})->about(), plain.about());
}

TEST(Tenant, WhatIsWrongIsNamed) {
    const Tenant plain{.name = "acme"};
    const std::vector<std::pair<std::string, json::value>> wrong{
        {"tier", "gold"},
        {"tier", 1},
        {"weight", 0},
        {"weight", -1},
        {"weight", "2"},
        {"running_max", 1.5},
        {"running_max", -1},
        {"running_max", 1e10},
        {"usd_per_day", -0.01},
        {"usd_per_day", 1e300},
        {"queued_max", true},
        {"reuse", 1},
        {"budget", 5},
        {"budget", json::array{5}},
        {"budget", {{"usd_per_week", 1}}},
        {"budget", {{"usd_per_day", -1}}},
        {"budget", {{"usd_per_day", "1"}}},
        {"pool", json::value(std::string(300, 'x'))},
        {"denied_nodes", "Bad"},
        {"denied_nodes", json::array{1}},
        {"denied_nodes", json::array{""}},
        {"colour", "red"},
        {"revision", 3},
    };
    for (const auto& [name, value] : wrong) {
        const auto changed = plain.with({{name, value}});
        ASSERT_FALSE(changed) << name << json::serialize(value);
        EXPECT_EQ(changed.error().code, Code::invalid_argument);
        EXPECT_EQ(changed.error().details.at("field"), json::value(name));
    }
    EXPECT_FALSE(plain.with({{"pool", "a"}, {"allowed_pools", json::array{"b"}}}));
    EXPECT_TRUE(plain.with({{"pool", "b"}, {"allowed_pools", json::array{"a", "b"}}}));
}

TEST(Tenant, ALaterVersionsMembersArePassedOver) {
    const IdentityRecord record{
        IdentityKind::tenant, "acme", 7, {{"tier", "pro"}, {"new", 1}, {"weight", "?"}}
    };
    const Tenant restored = Tenant::restore(record);
    EXPECT_EQ(restored.name, "acme");
    EXPECT_EQ(restored.revision, 7U);
    EXPECT_EQ(restored.tier, "pro");
    EXPECT_EQ(restored.weight, 1);
}

TEST(Tenant, NamesAreShortAndPrintable) {
    for (const char* good : {"a", "acme 7", "\xC3\xA9", "user:1"}) {
        EXPECT_TRUE(is_tenant_name(good)) << good;
    }
    EXPECT_FALSE(is_tenant_name(""));
    EXPECT_FALSE(is_tenant_name("a\nb"));
    EXPECT_FALSE(is_tenant_name(std::string("a\0", 2)));
    EXPECT_FALSE(is_tenant_name(std::string(129, 'x')));
}

}  // namespace
}  // namespace comfyd::auth
