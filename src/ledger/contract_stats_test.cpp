// What the sums over ended jobs promise, for every storage.
#include <gmock/gmock.h>

#include "ledger/rollup_names.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Millis kHour = std::chrono::hours(1);

class StatsContract : public Contract {
protected:
    static jobs::Usage used(Millis gpu) {
        jobs::Usage usage;
        usage.gpu = gpu;
        usage.model_load = gpu / 10;
        usage.inference = gpu - usage.model_load;
        usage.images = 3;
        usage.models = 2;
        usage.model_loads = 1;
        usage.vram_peak_bytes = 5'000'000'000;
        usage.gpu_second_usd = 0.0005;
        usage.cost_usd = jobs::cost_of(usage);
        return usage;
    }
    static jobs::Spec spec(std::string tenant, std::string workflow) {
        auto made = simple_spec(std::move(tenant));
        made.workflow_id = std::move(workflow);
        return made;
    }
    jobs::Job run(jobs::Spec spec, std::string worker, Millis gpu) {
        const auto queued = accept(std::move(spec));
        const auto running = commit(jobs::start(queued, std::move(worker), 2, clock_.now()));
        auto change = get(jobs::complete(running, {}, {}, 3, clock_.now()));
        jobs::add_usage(change, used(gpu));
        return commit(std::move(change));
    }
    jobs::Stats stats(
        jobs::StatsGroup group,
        std::optional<std::string> tenant = std::nullopt,
        Millis length = 24 * kHour
    ) {
        jobs::StatsQuery query;
        query.tenant = std::move(tenant);
        query.from = clock_.now() - length;
        query.to = clock_.now();
        query.group_by = group;
        return await_value(ledger().stats(std::move(query)));
    }
    static std::vector<std::string> keys(const jobs::Stats& stats) {
        std::vector<std::string> all;
        for (const auto& group : stats.groups) {
            all.push_back(group.key);
        }
        return all;
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, StatsContract, testing::ValuesIn(job_backends()), backend_name);

TEST_P(StatsContract, WithoutJobsThereIsNothing) {
    EXPECT_EQ(stats(jobs::StatsGroup::worker).totals, jobs::Totals());
    EXPECT_THAT(stats(jobs::StatsGroup::worker).groups, IsEmpty());
}

TEST_P(StatsContract, WhatAJobUsedIsKeptWithIt) {
    const auto job = run(simple_spec(), "gpu-1", Millis(1'500));
    storage_->reopen();
    const auto found = await_value(ledger().find(job.id));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->usage, used(Millis(1'500)));
    const auto page = await_value(ledger().list({}));
    ASSERT_EQ(page.jobs.size(), 1U);
    EXPECT_EQ(page.jobs[0].usage, found->usage);
}

TEST_P(StatsContract, SumsByWhateverIsAsked) {
    run(spec("acme", "portrait"), "gpu-1", Millis(1'000));
    run(spec("acme", "portrait"), "gpu-2", Millis(3'000));
    run(spec("zeta", "logo"), "gpu-1", Millis(500));
    storage_->reopen();
    run(spec("acme", ""), "gpu-1", Millis(100));
    const auto all = stats(jobs::StatsGroup::worker);
    EXPECT_EQ(all.totals.completed, 4U);
    EXPECT_EQ(all.totals.gpu, Millis(4'600));
    EXPECT_EQ(all.totals.model_load, Millis(460));
    EXPECT_EQ(all.totals.inference, Millis(4'140));
    EXPECT_EQ(all.totals.images, 12U);
    EXPECT_EQ(all.totals.model_loads, 4U);
    EXPECT_NEAR(all.totals.cost_usd, used(Millis(4'600)).cost_usd, 1e-8);
    EXPECT_EQ(all.totals.queued.count(), 4U);
    EXPECT_EQ(all.totals.ran.count(), 4U);
    EXPECT_THAT(keys(all), ElementsAre("gpu-2", "gpu-1"));
    EXPECT_EQ(all.groups[1].totals.completed, 3U);
    EXPECT_THAT(keys(stats(jobs::StatsGroup::tenant)), ElementsAre("acme", "zeta"));
    EXPECT_THAT(keys(stats(jobs::StatsGroup::workflow)), ElementsAre("portrait", "logo", ""));

    const auto own = stats(jobs::StatsGroup::tenant, "zeta");
    EXPECT_THAT(keys(own), ElementsAre("zeta"));
    EXPECT_EQ(own.totals.completed, 1U);
    EXPECT_EQ(stats(jobs::StatsGroup::none, "nobody").totals, jobs::Totals());
}

TEST_P(StatsContract, CountsEveryEndAndEveryRetry) {
    const auto cancelled = accept(simple_spec());
    commit(jobs::request_cancel(cancelled, 2, clock_.now()));
    auto running = start(accept(simple_spec()));
    auto retry = get(jobs::retry_later(running, {}, clock_.now(), 3, clock_.now()));
    jobs::add_usage(retry, used(Millis(100)));
    running = start(commit(jobs::requeue(commit(std::move(retry)), 4, clock_.now())));
    commit(jobs::fail_job(running, {}, 6, clock_.now()));
    const auto revived =
        commit(jobs::revive(*await_value(ledger().find(running.id)), 7, clock_.now()));
    auto ended = get(jobs::complete(start(revived), {}, {}, 9, clock_.now()));
    jobs::add_usage(ended, used(Millis(50)));
    EXPECT_EQ(commit(std::move(ended)).usage->gpu, Millis(150));
    const auto totals = stats(jobs::StatsGroup::none).totals;
    EXPECT_EQ(totals.cancelled, 1U);
    EXPECT_EQ(totals.failed, 1U);
    EXPECT_EQ(totals.completed, 1U);
    EXPECT_EQ(totals.retries, 1U);
    EXPECT_EQ(totals.gpu, Millis(150));
    EXPECT_EQ(totals.ran.count(), 2U);
}

TEST_P(StatsContract, ARefusedChangeAddsNothing) {
    const auto running = start(accept(simple_spec()));
    auto change = get(jobs::complete(running, {}, {}, 3, clock_.now()));
    jobs::add_usage(change, used(Millis(100)));
    auto stale = change;
    commit(std::move(change));
    EXPECT_EQ(await_code(ledger().commit(std::move(stale))), Code::conflict);
    EXPECT_EQ(stats(jobs::StatsGroup::none).totals.completed, 1U);
    EXPECT_EQ(stats(jobs::StatsGroup::none).totals.gpu, Millis(100));
}

TEST_P(StatsContract, ARangeHasWholeHours) {
    const Time first = jobs::hour_of(clock_.now());
    run(spec("acme", "w"), "gpu-1", Millis(10));
    clock_.advance(3 * kHour);
    run(spec("acme", "w"), "gpu-1", Millis(20));
    clock_.advance(30 * kHour);
    run(spec("acme", "w"), "gpu-1", Millis(40));
    const std::optional<std::string> everybody;
    for (const auto& tenant : {everybody, std::optional<std::string>("acme")}) {
        EXPECT_EQ(stats(jobs::StatsGroup::none, tenant, kHour).totals.gpu, Millis(40));
        EXPECT_EQ(stats(jobs::StatsGroup::none, tenant, 30 * kHour).totals.gpu, Millis(60));
        const auto all = stats(jobs::StatsGroup::hour, tenant, 24 * 30 * kHour);
        EXPECT_EQ(all.totals.gpu, Millis(70));
        EXPECT_THAT(
            keys(all),
            ElementsAre(
                to_rfc3339(first), to_rfc3339(first + 3 * kHour), to_rfc3339(first + 33 * kHour)
            )
        );
    }
}

TEST_P(StatsContract, TheOldIsForgotten) {
    run(spec("acme", "old"), "gpu-1", Millis(10));
    clock_.advance(jobs::kStatsLife - kHour);
    run(spec("acme", "young"), "gpu-1", Millis(20));
    const Millis ever = 2 * jobs::kStatsLife;
    EXPECT_EQ(stats(jobs::StatsGroup::none, {}, ever).totals.gpu, Millis(30));
    clock_.advance(3 * kHour);
    run(spec("acme", "new"), "gpu-1", Millis(40));
    clock_.advance(-4 * kHour);  // so that the range would reach it
    EXPECT_THAT(
        keys(stats(jobs::StatsGroup::workflow, {}, ever)), testing::Not(testing::Contains("old"))
    );
}

TEST_P(StatsContract, WorkflowsWithoutNumberShareARow) {
    constexpr std::size_t kMore = 5;
    const auto cancel = [this](std::string tenant, std::string workflow) {
        const auto job = accept(spec(std::move(tenant), std::move(workflow)));
        commit(jobs::request_cancel(job, 2, clock_.now()));
    };
    for (std::size_t i = 0; i < kRollupWorkflowsMax + kMore; ++i) {
        cancel("acme", "w" + std::to_string(i));
    }
    cancel("acme", "w0");
    cancel("zeta", "logo");
    const auto all = stats(jobs::StatsGroup::workflow);
    EXPECT_EQ(all.totals.cancelled, kRollupWorkflowsMax + kMore + 2);
    EXPECT_EQ(all.groups.size(), kRollupWorkflowsMax + 2);
    EXPECT_EQ(all.groups[0].key, kRollupOthers);
    EXPECT_EQ(all.groups[0].totals.cancelled, kMore);
    EXPECT_EQ(all.groups[1].key, "w0");
    EXPECT_EQ(all.groups[1].totals.cancelled, 2U);
}

}  // namespace
}  // namespace comfyd::ledger::test
