#include "jobs/tenants.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

constexpr Time kNow{std::chrono::hours(480'000)};

class TenantsTest : public testing::Test {
protected:
    std::optional<double> left(const std::string& tenant, Time now) const {
        scheduler::Circumstances known;
        tenants_.describe(tenant, now, known);
        return known.quota_left;
    }

    Tenants tenants_{{
        {"acme", {{}, scheduler::Tier::pro, 100}},
        {"free", {{}, scheduler::Tier::enterprise, 0}},
    }};
};

TEST_F(TenantsTest, OnlyWhatIsConfiguredIsKnown) {
    scheduler::Circumstances known;
    tenants_.describe("stranger", kNow, known);
    EXPECT_EQ(scheduler::grounds_of(known), scheduler::Grounds{});
    tenants_.describe("free", kNow, known);
    EXPECT_EQ(known.tier, scheduler::Tier::enterprise);
    EXPECT_EQ(known.quota_left, std::nullopt);
    EXPECT_EQ(tenants_.with_quota(), std::vector<std::string>{"acme"});
}

TEST_F(TenantsTest, AQuotaIsUsedUpAndComesBackAfterADay) {
    EXPECT_EQ(left("acme", kNow), 1);
    tenants_.add_used("acme", kNow, Millis(60'000));
    tenants_.add_used("acme", kNow + std::chrono::hours(2), Millis(35'000));
    tenants_.add_used("stranger", kNow, Millis(1'000'000));
    EXPECT_NEAR(*left("acme", kNow + std::chrono::hours(2)), 0.05, 1e-9);
    EXPECT_NEAR(*left("acme", kNow + std::chrono::hours(24)), 0.65, 1e-9);
    EXPECT_EQ(left("acme", kNow + std::chrono::hours(26)), 1);
    tenants_.add_used("acme", kNow + std::chrono::hours(24), Millis(200'000));
    EXPECT_LT(*left("acme", kNow + std::chrono::hours(24)), 0) << "more than all of it";
}

TEST_F(TenantsTest, TheyChangeAndWhatWasUsedStaysKnown) {
    tenants_.add_used("acme", kNow, Millis(50'000));
    tenants_.set({{"acme", {{}, scheduler::Tier::free, 200}}, {"late", {{}, {}, 10}}});
    EXPECT_NEAR(*left("acme", kNow), 0.75, 1e-9);
    EXPECT_EQ(left("late", kNow), 1);
    scheduler::Circumstances known;
    tenants_.describe("free", kNow, known);
    EXPECT_EQ(known.tier, scheduler::Tier::basic) << "it is not named any more";
    EXPECT_EQ(named_tier({{"tier", "pro"}}), "pro");
    EXPECT_EQ(named_tier({{"tier", 7}}), "");
    EXPECT_EQ(named_tier({}), "");
}

TEST_F(TenantsTest, WhatComesLateIsNotTakenForToday) {
    tenants_.add_used("acme", kNow, Millis(10'000));
    tenants_.add_used("acme", kNow - std::chrono::hours(24), Millis(50'000));
    EXPECT_NEAR(*left("acme", kNow), 0.9, 1e-9);
}

}  // namespace
}  // namespace comfyd::jobs
