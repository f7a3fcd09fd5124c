#include "autoscale/told_limits.hpp"

#include <gmock/gmock.h>

namespace comfyd::autoscale {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ToldLimitsTest : public testing::Test {
protected:
    // What is new when so much was spent, in words.
    std::vector<std::string> news(double usd, const std::string& remark = "") {
        Spending spent;
        spent.set(Span::day, now_, usd);
        std::vector<std::string> words;
        const auto all = limits({.usd_per_day = 10}, {&spent}, now_);
        for (const LimitNews& one : told_.take_news("the pool", all, now_, remark)) {
            words.push_back(std::string(one.what()) + ": " + one.sentence);
        }
        return words;
    }

    Time now_ = *parse_rfc3339("2026-11-19T10:00:00Z");
    ToldLimits told_;
};

TEST_F(ToldLimitsTest, EachLevelIsToldOnceUntilTheLimitBeginsAnew) {
    EXPECT_THAT(news(7.9), IsEmpty());
    EXPECT_THAT(
        news(8), ElementsAre("budget_low: the pool has spent 80 % of what it may in a day")
    );
    EXPECT_THAT(news(9.9), IsEmpty());
    told_ = ToldLimits::from_json(*json::parse_object(json::serialize(told_.to_json())));
    EXPECT_THAT(news(9.95), IsEmpty()) << "nor after a restart";
    EXPECT_THAT(
        news(10), ElementsAre("budget_spent: the pool has spent 100 % of what it may in a day")
    );
    EXPECT_THAT(news(11), IsEmpty());
    now_ += std::chrono::hours(24);
    EXPECT_THAT(news(0), IsEmpty());
    EXPECT_THAT(
        news(12), ElementsAre("budget_spent: the pool has spent 120 % of what it may in a day")
    );
}

TEST_F(ToldLimitsTest, WhatIsToldApartIsToldByItself) {
    EXPECT_THAT(news(8).size(), 1);
    EXPECT_THAT(
        news(8, ", by its quota"),
        ElementsAre("budget_low: the pool has spent 80 % of what it may in a day, by its quota")
    );
    EXPECT_THAT(news(8, ", by its quota"), IsEmpty());
}

}  // namespace
}  // namespace comfyd::autoscale
