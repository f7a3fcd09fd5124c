#include <gmock/gmock.h>

#include <cmath>

#include "simulate/elastic_report.hpp"

namespace comfyd::simulate {
namespace {

using testing::Each;
using testing::Ge;
using testing::IsEmpty;

autoscale::Settings scaled(int most) {
    autoscale::Settings settings;
    settings.max = most;
    return settings;
}

ElasticOutcome run_own(
    const std::vector<ElasticJob>& jobs,
    const autoscale::Settings& scaling,
    const ElasticSettings& settings
) {
    const auto rule = make_own_rule(scaling);
    return run_elastic(jobs, *rule, settings);
}

TEST(Elastic, OneJobCostsItsStartItselfAndTheTimeUntilItsMachineGoes) {
    const std::vector<ElasticJob> jobs{{.at_s = 100, .seconds = 10}};
    const ElasticOutcome outcome = run_own(jobs, scaled(10), {});
    EXPECT_EQ(outcome.starts, 1U);
    EXPECT_NEAR(outcome.wait(0.5), 90, 19);
    EXPECT_NEAR(outcome.machine_hours * 3600, 90 + 10 + 300, 25);
}

TEST(Elastic, AFixedFleetIsPaidAllTheTime) {
    const std::vector<ElasticJob> jobs = make_elastic_day(1);
    const auto rule = make_fixed_rule(20);
    const ElasticOutcome outcome = run_elastic(jobs, *rule, {});
    EXPECT_EQ(outcome.starts, 20U);
    EXPECT_NEAR(outcome.machine_hours, 20 * 24.5, 5);
    EXPECT_NEAR(
        outcome.idle_hours + outcome.starting_hours + least_usd(jobs, {}),
        outcome.machine_hours,
        0.1
    );
}

TEST(Elastic, WhoKnowsAllBeforehandStopsMachinesWhereAStartCostsLess) {
    const std::vector<ElasticJob> jobs{
        {.at_s = 0, .seconds = 10}, {.at_s = 50, .seconds = 10}, {.at_s = 1'000, .seconds = 10}
    };
    constexpr double kSeconds = (90 + 10) + (40 + 10) + (90 + 10);
    EXPECT_NEAR(foreseen_usd(jobs, {.usd_per_hour = 3'600}), kSeconds, 1e-6);
    // Two at a time are two machines; the one that was free last is taken.
    const std::vector<ElasticJob> pair{
        {.at_s = 0, .seconds = 10}, {.at_s = 0, .seconds = 30}, {.at_s = 40, .seconds = 10}
    };
    EXPECT_NEAR(foreseen_usd(pair, {.usd_per_hour = 3'600}), 90 + 10 + 90 + 30 + 10 + 10, 1e-6);
}

TEST(Elastic, MergedRunsCostLessThanTheirParts) {
    std::vector<ElasticJob> jobs(16, ElasticJob{.seconds = 100});
    EXPECT_NEAR(least_usd(jobs, {.usd_per_hour = 3'600}), 1'600, 1e-6);
    ElasticSettings merged{.usd_per_hour = 3'600, .merge_max = 8, .merge_cost = 0.3};
    EXPECT_NEAR(least_usd(jobs, merged), 2 * 310, 1e-6);
    EXPECT_GE(run_own(jobs, scaled(10), merged).usd, least_usd(jobs, merged));
    merged.merge_cost = 2;  // nobody has to merge
    EXPECT_NEAR(least_usd(jobs, merged), 1'600, 1e-6);
    jobs.resize(2);
    merged.merge_cost = 0.3;
    EXPECT_NEAR(least_usd(jobs, merged), 130, 1e-6) << "there are no more";
}

TEST(Elastic, AJobThatNoMachineLivesToTheEndOfIsToldOf) {
    const std::vector<ElasticJob> jobs{{.at_s = 1, .seconds = 36'000}};
    const auto rule = make_keda_rule(1, 0, 1);  // it looks but every 15 s
    const ElasticOutcome outcome = run_elastic(jobs, *rule, {.spot_hours = 0.1});
    EXPECT_LT(outcome.waits.front(), 0);
    EXPECT_TRUE(std::isinf(outcome.wait(0.95)));
    EXPECT_GT(outcome.repeated, 1'000U);
}

TEST(Elastic, AJobWhoseMachineWasTakenBackHasWaitedForTheRunThatItEndedWith) {
    std::vector<ElasticJob> jobs(40, ElasticJob{.at_s = 1, .seconds = 120});
    const ElasticOutcome outcome = run_own(jobs, scaled(40), {.spot_hours = 0.1});
    ASSERT_GT(outcome.repeated, 0U);
    EXPECT_GT(outcome.wait(1), 90 + 90) << "another machine had to start";
}

// As the command runs them where nothing else is said.
ElasticSettings troubled(std::uint64_t seed) {
    return {.seed = seed, .spot_hours = 4, .no_stock = make_stock_outs(seed, 1, 3)};
}

TEST(Elastic, StockOutsAreByDayAndFollowFromTheirSeed) {
    const auto spans = make_stock_outs(7, 2, 3);
    EXPECT_EQ(spans, make_stock_outs(7, 2, 3));
    EXPECT_NE(spans, make_stock_outs(8, 2, 3));
    ASSERT_EQ(spans.size(), 6U);
    for (const auto& [from, to] : spans) {
        EXPECT_GE(to - from, 300);
        EXPECT_LE(to - from, 1'200);
        EXPECT_GE(std::fmod(from, 86'400), 6 * 3'600);
    }
    EXPECT_THAT(make_stock_outs(7, 2, 0), IsEmpty());
}

class ElasticSeeds : public testing::TestWithParam<std::uint64_t> {
protected:
    const std::vector<ElasticJob> jobs_ = make_elastic_day(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Seeds, ElasticSeeds, testing::Range<std::uint64_t>(1, 9));

TEST_P(ElasticSeeds, NothingIsLostAndNothingFlapsWithSpotMachinesAndWithoutStock) {
    ElasticSettings settings = troubled(GetParam());
    settings.spot_hours = 1;
    const ElasticOutcome outcome = run_own(jobs_, scaled(60), settings);
    EXPECT_GT(outcome.lost, 10U);
    EXPECT_GT(outcome.repeated, 0U);
    EXPECT_THAT(outcome.waits, Each(Ge(0.0F)));
    EXPECT_EQ(outcome.turns, 0U);
    EXPECT_LE(outcome.most, 60);
}

TEST_P(ElasticSeeds, NothingIsBoughtBeyondItsBudget) {
    const ElasticSettings settings = troubled(GetParam());
    const ElasticOutcome free = run_own(jobs_, scaled(60), settings);
    autoscale::Settings poor = scaled(60);
    poor.budget.usd_per_hour = 9.5;
    const ElasticOutcome limited = run_own(jobs_, poor, settings);
    EXPECT_LE(limited.most, 9);
    EXPECT_LT(limited.usd, free.usd);
    poor.budget = {.usd_per_day = 40};
    const ElasticOutcome spent = run_own(jobs_, poor, settings);
    EXPECT_GT(spent.usd_by_day.size(), 2U) << "what cannot be paid waits for the next day";
    EXPECT_THAT(spent.waits, Each(Ge(0.0F)));
    constexpr double kToTheEnd = 60 * 150.0 / 3600;  // of jobs that ran when all was spent
    for (const double usd : spent.usd_by_day) {
        EXPECT_LE(usd, 40 + kToTheEnd);
    }
}

void expect_good(std::uint64_t seed, const ElasticSettings& settings) {
    const ElasticComparison all = compare_elastic(make_elastic_day(seed), scaled(60), settings);
    EXPECT_LE(all.own.front().usd, 0.45 * all.fixed.usd) << to_text(all);
    EXPECT_GT(all.own.front().usd, all.foreseen_usd);
    EXPECT_GT(all.foreseen_usd, all.least_usd);
    EXPECT_LE(all.fixed.wait(0.95), all.own.front().wait(0.95));
    EXPECT_THAT(all.better_than(all.own.front()), IsEmpty()) << to_text(all);
}

TEST(ElasticDays, CostLessThanHalfOfAFixedFleetThatIsAsQuickAndNoPeerIsBetter) {
    for (const std::uint64_t seed : {2U, 3U}) {
        expect_good(seed, troubled(seed));
    }
    expect_good(1, {.seed = 1});  // and where nothing is taken back, and all is to be had
}

}  // namespace
}  // namespace comfyd::simulate
