// Jobs while workers come and go: the service, its dispatcher and the real fleet over doubles of
// ComfyUI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "events/local_hub.hpp"
#include "fleet/test_support.hpp"
#include "jobs/service.hpp"
#include "ledger/memory_ledger.hpp"

namespace comfyd::fleet {
namespace {

constexpr Millis kLong = std::chrono::hours(1);
const Requirement kNeeded = Requirement::of({{"EmptyImage"}, {"ImageInvert"}, {"SaveImage"}});

class WorkersComeAndGo : public FleetTest {
protected:
    WorkersComeAndGo() : ledger_(clock_), hub_(core_.executor()) {
        make_bare_fleet();
        on_core([&] {
            service_ = std::make_unique<jobs::Service>(
                core_.executor(), clock_, ledger_, hub_, jobs::ServiceOptions{}
            );
            fleet_->start();
        });
        EXPECT_TRUE(wait(service_->lead("main", {ledger_, *fleet_})));
    }
    ~WorkersComeAndGo() override {
        wait(service_->stop(Millis(0)));
        on_core([&] { service_.reset(); });
        wait(fleet_->stop());
        on_core([&] { fleet_.reset(); });
        doubles_.clear();
    }

    // A worker of this id comes, on a machine of its own.
    support::ComfyDouble& come(const std::string& id, support::DoubleOptions options = {}) {
        auto& made = doubles_.emplace_back(
            std::make_unique<support::ComfyDouble>(double_thread_.context(), std::move(options))
        );
        made->start();
        on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = id, .url = made->url()})); });
        return *made;
    }
    std::future<Result<>> go(const std::string& id, Millis patience) {
        return boost::asio::co_spawn(
            core_.executor(), fleet_->remove(id, patience), boost::asio::use_future
        );
    }
    JobId submit() {
        jobs::Spec spec;
        spec.dialect = "test";
        spec.workflow = kPicture;
        spec.requirement = kNeeded;
        auto submitted = wait(service_->submit(std::move(spec)));
        EXPECT_TRUE(submitted) << submitted.error().message;
        return submitted->view.job.id;
    }
    jobs::Job job(const JobId& id) { return wait(service_->get("local", id))->job; }
    bool comes_to(const JobId& id, jobs::State state) {
        return support::wait_until([&] { return job(id).state == state; });
    }

    ledger::MemoryLedger ledger_;
    events::LocalHub hub_;
    std::unique_ptr<jobs::Service> service_;
    std::vector<std::unique_ptr<support::ComfyDouble>> doubles_;
};

TEST_F(WorkersComeAndGo, AJobThatWaitsIsTakenByAWorkerThatComes) {
    const JobId id = submit();
    EXPECT_EQ(job(id).state, jobs::State::queued);
    come("late");
    ASSERT_TRUE(comes_to(id, jobs::State::completed));
    EXPECT_EQ(job(id).worker, "late");
}

TEST_F(WorkersComeAndGo, AWorkerThatLeavesFinishesItsJobAndTheNextWaitsForAnother) {
    come("first", {.delay = Millis(300)});
    const JobId running = submit();
    ASSERT_TRUE(comes_to(running, jobs::State::running));
    auto gone = go("first", kLong);
    const JobId next = submit();
    EXPECT_TRUE(gone.get());
    EXPECT_TRUE(comes_to(running, jobs::State::completed));
    EXPECT_EQ(job(running).attempt, 1);
    EXPECT_EQ(job(next).state, jobs::State::queued);
    EXPECT_TRUE(wait(service_->workers()).empty());
    come("second");
    ASSERT_TRUE(comes_to(next, jobs::State::completed));
    EXPECT_EQ(job(next).worker, "second");
}

TEST_F(WorkersComeAndGo, WhatIsGivenBackRunsElsewhere) {
    auto& slow = come("slow", {.delay = std::chrono::minutes(10)});
    const JobId id = submit();
    ASSERT_TRUE(support::wait_until([&] { return slow.queue_remaining() == 1; }));
    come("quick");
    EXPECT_TRUE(go("slow", Millis(0)).get());
    EXPECT_EQ(slow.queue_remaining(), 0U) << "the prompt runs on where nobody looks";
    ASSERT_TRUE(comes_to(id, jobs::State::completed));
    EXPECT_EQ(job(id).worker, "quick");
    EXPECT_EQ(job(id).attempt, 2);
}

TEST_F(WorkersComeAndGo, AnotherWorkerMayHaveTheNameOfOneThatLeft) {
    come("gpu");
    const JobId first = submit();
    ASSERT_TRUE(comes_to(first, jobs::State::completed));
    EXPECT_TRUE(go("gpu", kLong).get());
    auto& successor = come("gpu");
    const JobId second = submit();
    ASSERT_TRUE(comes_to(second, jobs::State::completed));
    EXPECT_EQ(successor.executions().total, 1U);
}

// Each job is completed, and no prompt runs twice, however often the workers change meanwhile.
TEST_F(WorkersComeAndGo, JobsOutliveManyChanges) {
    constexpr int kChanges = 12;
    std::vector<JobId> ids;
    come("w0");
    for (int change = 1; change <= kChanges; ++change) {
        ids.push_back(submit());
        ids.push_back(submit());
        come("w" + std::to_string(change));
        ids.push_back(submit());
        EXPECT_TRUE(go("w" + std::to_string(change - 1), kLong).get());
    }
    for (const JobId& id : ids) {
        EXPECT_TRUE(comes_to(id, jobs::State::completed)) << id.to_string();
    }
    std::uint64_t executions = 0;
    for (const auto& machine : doubles_) {
        executions += machine->executions().total;
    }
    EXPECT_EQ(executions, ids.size());
}

}  // namespace
}  // namespace comfyd::fleet
