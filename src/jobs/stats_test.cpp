#include "jobs/stats.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

constexpr std::uint64_t kGib = 1ULL << 30;

Usage gpu_usage(Millis gpu, std::optional<std::uint64_t> vram) {
    Usage usage;
    usage.gpu = gpu;
    usage.model_load = gpu / 4;
    usage.inference = gpu - usage.model_load;
    usage.images = 2;
    usage.models = 3;
    usage.model_loads = 1;
    usage.vram_peak_bytes = vram;
    usage.gpu_second_usd = 0.0005;
    usage.cost_usd = cost_of(usage);
    return usage;
}

TEST(Usage, CostIsGpuTimeByPriceAndMemory) {
    EXPECT_DOUBLE_EQ(cost_of(gpu_usage(Millis(10'000), std::nullopt)), 0.005);
    EXPECT_DOUBLE_EQ(cost_of(gpu_usage(Millis(10'000), 24 * kGib)), 0.0075);
    EXPECT_DOUBLE_EQ(cost_of(gpu_usage(Millis(10'000), 12 * kGib)), 0.00625);
    EXPECT_EQ(cost_of(Usage{}), 0);
}

TEST(Usage, AttemptsAddUp) {
    Usage all = gpu_usage(Millis(1'000), 4 * kGib);
    all.add(gpu_usage(Millis(3'000), std::nullopt));
    EXPECT_EQ(all.gpu, Millis(4'000));
    EXPECT_EQ(all.model_load, Millis(1'000));
    EXPECT_EQ(all.inference, Millis(3'000));
    EXPECT_EQ(all.images, 4);
    EXPECT_EQ(all.models, 3);
    EXPECT_EQ(all.model_loads, 2);
    EXPECT_EQ(all.vram_peak_bytes, 4 * kGib);
    EXPECT_DOUBLE_EQ(
        all.cost_usd,
        gpu_usage(Millis(1'000), 4 * kGib).cost_usd + gpu_usage(Millis(3'000), {}).cost_usd
    );
}

TEST(Usage, SurvivesItsTextAndRefusesNonsense) {
    Usage usage = gpu_usage(Millis(1'234), 5 * kGib);
    usage.ram_peak_bytes = 0;
    usage.gpu_percent = 87.5;
    EXPECT_EQ(Usage::from_json(usage.to_json()), usage);
    EXPECT_EQ(Usage::from_json({}), Usage{});
    EXPECT_TRUE(Usage{}.to_json().empty());
    const auto odd = json::parse_object(
        R"({"gpu_ms": -5, "images": 1e30, "models": "x", "cost": -1, "vram": [], "cpu": "hot"})"
    );
    EXPECT_EQ(Usage::from_json(*odd), Usage{});
}

TEST(Durations, PercentilesAreWithinABucket) {
    Durations durations;
    EXPECT_EQ(durations.percentile(0.5), std::nullopt);
    for (int ms = 1; ms <= 1'000; ++ms) {
        durations.add(Millis(ms));
    }
    EXPECT_EQ(durations.count(), 1'000U);
    EXPECT_NEAR(static_cast<double>(durations.percentile(0.5)->count()), 500, 500 * 0.2);
    EXPECT_NEAR(static_cast<double>(durations.percentile(0.95)->count()), 950, 950 * 0.2);
    EXPECT_LE(durations.percentile(0), durations.percentile(1));
}

TEST(Durations, TakesAnyLength) {
    Durations durations;
    durations.add(Millis(-5));
    durations.add(Millis(0));
    EXPECT_LE(*durations.percentile(1), Millis(1));
    durations.add(Millis::max());
    EXPECT_GT(*durations.percentile(1), std::chrono::hours(24 * 20));
}

TEST(Durations, SurviveTheirText) {
    Durations durations;
    EXPECT_EQ(durations.encode(), "");
    durations.add(Millis(1));
    EXPECT_EQ(durations.encode(), "1:1");
    durations.add(Millis(4));
    durations.add(Millis(4));
    EXPECT_EQ(durations.encode(), "1:1,0,0,0,2");
    EXPECT_EQ(Durations::decode(durations.encode()), durations);
    EXPECT_EQ(Durations::decode(""), Durations());
    Durations twice = durations;
    twice.add(durations);
    EXPECT_EQ(twice.encode(), "1:2,0,0,0,4");
    for (const char* text :
         {"x", "1", "1:", "1:x", "64:1", "63:1,1", "1:1,", "1;1", "-1:1", "1:1 "}) {
        EXPECT_EQ(Durations::decode(text), std::nullopt) << text;
    }
}

class StatsTest : public testing::Test {
protected:
    StatsTest() {
        Spec spec;
        spec.tenant = "acme";
        spec.workflow_id = "portrait";
        queued_ = make_job(JobId::make(clock_.now()), spec, clock_.now()).job;
        clock_.advance(Millis(2'000));
        running_ = start(queued_, "gpu-1", 2, clock_.now())->job;
        clock_.advance(Millis(8'000));
    }
    ManualClock clock_;
    Job queued_;
    Job running_;
};

TEST_F(StatsTest, AnEndCountsWithItsTimes) {
    auto change = *complete(running_, {}, {}, 3, clock_.now());
    add_usage(change, gpu_usage(Millis(7'000), 24 * kGib));
    EXPECT_EQ(change.job.usage, change.used);
    const auto entry = stats_of(change);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->key, (StatsKey{hour_of(clock_.now()), "acme", "portrait", "gpu-1"}));
    EXPECT_EQ(entry->totals.completed, 1U);
    EXPECT_EQ(entry->totals.jobs(), 1U);
    EXPECT_EQ(entry->totals.retries, 0U);
    EXPECT_EQ(entry->totals.gpu, Millis(7'000));
    EXPECT_EQ(entry->totals.images, 2U);
    EXPECT_EQ(entry->totals.model_loads, 1U);
    EXPECT_DOUBLE_EQ(entry->totals.cost_usd, 7 * 0.0005 * 1.5);
    EXPECT_NEAR(static_cast<double>(entry->totals.queued.percentile(0.5)->count()), 2'000, 400);
    EXPECT_NEAR(static_cast<double>(entry->totals.ran.percentile(0.5)->count()), 8'000, 1'600);
}

TEST_F(StatsTest, AFailedAttemptIsARetryAndItsUseIsCountedOnce) {
    auto change = *retry_later(running_, Failure{}, clock_.now() + Millis(10), 3, clock_.now());
    add_usage(change, gpu_usage(Millis(1'000), {}));
    const auto retried = stats_of(change);
    ASSERT_TRUE(retried);
    EXPECT_EQ(retried->totals.retries, 1U);
    EXPECT_EQ(retried->totals.jobs(), 0U);
    EXPECT_EQ(retried->totals.gpu, Millis(1'000));
    EXPECT_EQ(retried->totals.ran.count(), 0U);

    const auto again = start(requeue(change.job, 4, clock_.now())->job, "gpu-2", 5, clock_.now());
    EXPECT_EQ(stats_of(*again), std::nullopt);
    auto failed = *fail_job(again->job, Failure{}, 6, clock_.now());
    add_usage(failed, gpu_usage(Millis(500), {}));
    const auto entry = stats_of(failed);
    EXPECT_EQ(entry->key.worker, "gpu-2");
    EXPECT_EQ(entry->totals.failed, 1U);
    EXPECT_EQ(entry->totals.gpu, Millis(500));
    EXPECT_EQ(failed.job.usage->gpu, Millis(1'500));
}

TEST_F(StatsTest, AJobThatNeverRanHasNoTimes) {
    const auto entry = stats_of(*request_cancel(queued_, 2, clock_.now()));
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->key.worker, "");
    EXPECT_EQ(entry->totals.cancelled, 1U);
    EXPECT_EQ(entry->totals.queued.count(), 0U);
    EXPECT_EQ(stats_of(*request_cancel(running_, 3, clock_.now())), std::nullopt);
    EXPECT_EQ(stats_of(*expire(running_, 3, clock_.now()))->totals.expired, 1U);
}

TEST(StatsSum, GroupsAndSorts) {
    Totals small;
    small.completed = 1;
    small.gpu = Millis(10);
    Totals large = small;
    large.gpu = Millis(50);
    const Time hour = hour_of(Time(Millis(1'700'000'000'000)));
    StatsSum by_worker(StatsGroup::worker);
    by_worker.add({hour, "a", "w", "one"}, small);
    by_worker.add({hour, "b", "w", "two"}, large);
    by_worker.add({hour, "c", "w", "one"}, small);
    const auto workers = by_worker.take();
    EXPECT_EQ(workers.totals.completed, 3U);
    EXPECT_EQ(workers.totals.gpu, Millis(70));
    ASSERT_EQ(workers.groups.size(), 2U);
    EXPECT_EQ(workers.groups[0].key, "two");
    EXPECT_EQ(workers.groups[1].key, "one");
    EXPECT_EQ(workers.groups[1].totals.completed, 2U);
    EXPECT_FALSE(workers.is_cut);

    StatsSum by_hour(StatsGroup::hour);
    by_hour.add({hour + std::chrono::hours(1), "a", "", ""}, large);
    by_hour.add({hour, "a", "", ""}, small);
    EXPECT_EQ(by_hour.take().groups[0].key, to_rfc3339(hour));

    StatsSum alone(StatsGroup::none);
    alone.add({hour, "a", "", ""}, small);
    EXPECT_TRUE(alone.take().groups.empty());
}

TEST(StatsSum, ThereIsAnEndToGroups) {
    StatsSum sum(StatsGroup::workflow);
    Totals one;
    one.completed = 1;
    for (std::size_t i = 0; i < kStatsGroupsMax + 5; ++i) {
        sum.add({Time{}, "a", std::to_string(i), ""}, one);
    }
    const auto stats = sum.take();
    EXPECT_EQ(stats.groups.size(), kStatsGroupsMax);
    EXPECT_EQ(stats.totals.completed, kStatsGroupsMax + 5);
    EXPECT_TRUE(stats.is_cut);
}

TEST(StatsGroup, NamesGoBothWays) {
    for (const auto group :
         {StatsGroup::tenant, StatsGroup::workflow, StatsGroup::worker, StatsGroup::hour}) {
        EXPECT_EQ(parse_stats_group(to_string(group)), group);
    }
    EXPECT_EQ(parse_stats_group(""), std::nullopt);
    EXPECT_EQ(parse_stats_group("day"), std::nullopt);
}

}  // namespace
}  // namespace comfyd::jobs
