#include <gmock/gmock.h>

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

class ElasticDays : public testing::TestWithParam<std::uint64_t> {
protected:
    const std::vector<ElasticJob> jobs_ = make_elastic_day(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Seeds, ElasticDays, testing::Range<std::uint64_t>(1, 4));

TEST_P(ElasticDays, NothingIsLostWithSpotMachinesAndWithoutStock) {
    ElasticSettings settings{.seed = GetParam(), .spot_hours = 1};
    settings.no_stock = {{10 * 3600, 10.2 * 3600}, {15 * 3600, 15.1 * 3600}};
    const ElasticOutcome outcome = run_own(jobs_, scaled(60), settings);
    EXPECT_GT(outcome.lost, 10U);
    EXPECT_THAT(outcome.waits, Each(Ge(0.0F)));
}

TEST_P(ElasticDays, NothingFlapsAndNothingIsBoughtBeyondItsBudget) {
    ElasticSettings settings{.seed = GetParam()};
    const ElasticOutcome free = run_own(jobs_, scaled(60), settings);
    EXPECT_EQ(free.turns, 0U);
    EXPECT_LE(free.most, 60);
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

TEST_P(ElasticDays, CostsLessThanHalfOfAFixedFleetThatIsAsQuickAndNoPeerIsBetter) {
    const ElasticComparison all = compare_elastic(jobs_, scaled(60), {.seed = GetParam()});
    EXPECT_LE(all.own.front().usd, 0.45 * all.fixed.usd) << to_text(all);
    EXPECT_GT(all.own.front().usd, all.least_usd);
    EXPECT_LE(all.fixed.wait(0.95), all.own.front().wait(0.95));
    EXPECT_THAT(all.better_than(all.own.front()), IsEmpty()) << to_text(all);
}

}  // namespace
}  // namespace comfyd::simulate
