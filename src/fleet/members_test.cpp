// Workers that come and go while the fleet serves.
#include <gmock/gmock.h>

#include "fleet/fleet.hpp"
#include "fleet/provider.hpp"
#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

constexpr Millis kLong = std::chrono::hours(1);

class FleetMembersTest : public FleetTest {
protected:
    bool is_there(const std::string& id) {
        return on_core([&] { return fleet_->find(id) != nullptr; });
    }
    std::future<Result<>> remove(const std::string& id, Millis patience) {
        return boost::asio::co_spawn(
            core_.executor(), fleet_->remove(id, patience), boost::asio::use_future
        );
    }
    // A run whose prompt the worker has.
    std::unique_ptr<Run> begin_slow() {
        auto run = begin(assignment(picture_with("slow=600000")));
        EXPECT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 1; }));
        return run;
    }
};

TEST_F(FleetMembersTest, AWorkerThatWasRemovedIsGoneAndItsIdIsFree) {
    start();
    std::set<std::string> told;
    on_core([&] {
        fleet_->on_change([&](const std::set<std::string>& workers) { told = workers; });
    });
    const auto removed = wait(fleet_->remove("gpu", kLong));
    ASSERT_TRUE(removed) << removed.error().message;
    EXPECT_FALSE(is_there("gpu"));
    EXPECT_FALSE(fleet_->catalogue()->knows_workers());
    EXPECT_TRUE(support::wait_until([&] { return on_core([&] { return told.contains("gpu"); }); }));
    EXPECT_TRUE(support::wait_until([&] { return comfy_->sockets_open() == 0; }));
    on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = comfy_->url()})); });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    EXPECT_TRUE(run(assignment(kPicture)));
    EXPECT_TRUE(fleet_->catalogue()->knows_workers());
}

TEST_F(FleetMembersTest, OfAPoolThatIsKeptIsKnownWhatItCouldLastRun) {
    start();
    on_core([&] { fleet_->remember_pool("default", "", nullptr, {}); });
    ASSERT_EQ(fleet_->catalogue()->workers().size(), 1U);
    const auto classes = fleet_->catalogue()->workers().front().classes;
    ASSERT_TRUE(wait(fleet_->remove("gpu", kLong)));
    const auto after = fleet_->catalogue();
    ASSERT_EQ(after->workers().size(), 1U);
    EXPECT_EQ(after->workers().front().classes, classes);
    EXPECT_EQ(after->workers().front().pool, "default");
    on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = comfy_->url()})); });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    ASSERT_EQ(fleet_->catalogue()->workers().size(), 1U);
    EXPECT_EQ(fleet_->catalogue()->workers().front().worker, "gpu");
}

TEST_F(FleetMembersTest, OfAPoolWhoseSoftwareIsAnotherNowNothingIsKnown) {
    start();
    const auto classes = fleet_->catalogue()->workers().front().classes;
    on_core([&] { fleet_->remember_pool("default", "second", nullptr, {}); });
    ASSERT_TRUE(wait(fleet_->remove("gpu", kLong)));
    EXPECT_FALSE(fleet_->catalogue()->knows_workers()) << "it was made with another";
    on_core([&] {
        EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = comfy_->url(), .software = "second"}));
    });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    EXPECT_EQ(fleet_->catalogue()->workers().front().software, "second");
    ASSERT_TRUE(wait(fleet_->remove("gpu", kLong)));
    ASSERT_EQ(fleet_->catalogue()->workers().size(), 1U);
    EXPECT_EQ(fleet_->catalogue()->workers().front().classes, classes);
    EXPECT_EQ(fleet_->catalogue()->workers().front().software, "second");
}

TEST_F(FleetMembersTest, WhatRunsOnAWorkerThatLeavesIsFinished) {
    start({.delay = Millis(200)});
    auto run = begin(assignment(kPicture));
    auto leaving = remove("gpu", kLong);
    EXPECT_FALSE(on_core([&] { return fleet_->find("gpu")->available(); }));
    EXPECT_EQ(on_core([&] { return fleet_->resume("gpu"); }).error().code, Code::conflict);
    EXPECT_EQ(remove("gpu", kLong).get().error().code, Code::conflict);
    EXPECT_TRUE(end(*run));
    EXPECT_TRUE(leaving.get());
    EXPECT_FALSE(is_there("gpu"));
}

TEST_F(FleetMembersTest, WhatDoesNotEndInTimeIsGivenBack) {
    start();
    auto run = begin_slow();
    EXPECT_TRUE(wait(fleet_->remove("gpu", Millis(0))));
    const auto result = end(*run);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_unavailable);
    EXPECT_EQ(comfy_->queue_remaining(), 0U) << "its prompt runs on";
}

TEST_F(FleetMembersTest, WhoIsOnTheWayToAWorkerThatLeftIsRefused) {
    start();
    const auto worker = on_core([&] { return fleet_->find("gpu"); });
    EXPECT_TRUE(wait(fleet_->remove("gpu", kLong)));
    Recorder recorder;
    jobs::StopRequest stop(core_.executor());
    EXPECT_FALSE(on_core([&] { return worker->available(); }));
    const auto result = wait(worker->run(assignment(kPicture), recorder, stop));
    EXPECT_EQ(result.error().code, Code::worker_unavailable);
    EXPECT_TRUE(comfy_->accepted_prompts().empty());
}

TEST_F(FleetMembersTest, WhoIsExpectedFromBeforeARestartFindsItsWorker) {
    start();
    auto job = assignment(picture_with("slow=100"));
    auto first = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 1; }));
    stop(*first, Code::shutting_down);
    EXPECT_EQ(end(*first).error().code, Code::shutting_down);
    auto expected = on_core([&] { return fleet_->find("gpu")->expect_attempt(); });
    auto leaving = remove("gpu", kLong);
    EXPECT_EQ(leaving.wait_for(Millis(0)), std::future_status::timeout);
    job.reattach = true;
    auto again = begin(job);
    on_core([&] { expected.reset(); });
    EXPECT_TRUE(end(*again));
    EXPECT_TRUE(leaving.get());
    EXPECT_EQ(comfy_->executions().total, 1U);
}

TEST_F(FleetMembersTest, WhoIsExpectedAndComesTooLateTakesItsPromptBack) {
    start();
    auto job = assignment(picture_with("slow=600000"));
    auto first = begin(job);
    ASSERT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 1; }));
    stop(*first, Code::shutting_down);
    EXPECT_EQ(end(*first).error().code, Code::shutting_down);
    auto expected = on_core([&] { return fleet_->find("gpu")->expect_attempt(); });
    auto leaving = remove("gpu", Millis(0));
    job.reattach = true;
    auto again = begin(job);
    EXPECT_EQ(end(*again).error().code, Code::worker_unavailable);
    on_core([&] { expected.reset(); });
    EXPECT_TRUE(leaving.get());
    EXPECT_EQ(comfy_->queue_remaining(), 0U) << "its prompt runs on";
}

TEST_F(FleetMembersTest, ARemovalThatIsCalledOffLeavesTheWorkerDraining) {
    start();
    auto run = begin_slow();
    std::optional<Result<>> removed;
    TaskGroup group(core_.executor());
    const auto keep = [](Fleet& fleet, std::optional<Result<>>& into) -> Task<> {
        into = co_await fleet.remove("gpu", kLong);
    };
    on_core([&] { group.spawn("removal", keep(*fleet_, removed)); });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::draining));
    on_core([&] { group.cancel(); });
    wait(group.join());
    EXPECT_EQ(removed->error().code, Code::cancelled);
    EXPECT_TRUE(is_there("gpu"));
    EXPECT_TRUE(on_core([&] { return fleet_->resume("gpu"); }));
    stop(*run, Code::cancelled);
    EXPECT_FALSE(end(*run));
}

TEST_F(FleetMembersTest, NobodyIsNotRemoved) {
    start();
    EXPECT_EQ(wait(fleet_->remove("nobody", kLong)).error().code, Code::not_found);
}

TEST_F(FleetMembersTest, TheConfigurationIsOneProviderOfWorkers) {
    make_bare_fleet();
    on_core([&] {
        ConfiguredWorkers good({{.id = "a", .url = "http://a"}, {.id = "b", .url = "http://b"}});
        EXPECT_TRUE(good.begin(*fleet_));
        EXPECT_EQ(fleet_->workers().size(), 2U);
        ConfiguredWorkers wrong({{.id = "c", .url = "nonsense"}});
        EXPECT_EQ(wrong.begin(*fleet_).error().code, Code::invalid_argument);
    });
}

// It hangs before it listens, so that no job's time or cancelling ends it.
class EnginesThatDoNotComeUp : public FleetMembersTest {
protected:
    void add_engine() {
        EngineConfig engine;
        engine.socket = folder_ / "nobody";
        engine.command = {"engine", "/bin/sh", {"-c", "exec sleep 600"}, {}};
        on_core([&] { EXPECT_TRUE(fleet_->add_engine(std::move(engine))); });
    }
    std::uint64_t engine_ends() {
        return on_core([&] { return fleet_->engine_ends(); });
    }
};

TEST_F(EnginesThatDoNotComeUp, AreReplaced) {
    start();
    add_engine();
    EXPECT_TRUE(support::wait_until([&] { return engine_ends() >= 2; }));
}

// It is asked some times a second, and a busy machine may need many for its start.
TEST_F(EnginesThatDoNotComeUp, HaveTimeForIt) {
    options_.dead_after = std::chrono::hours(1);
    start();
    add_engine();
    const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    support::wait_until([&] { return std::chrono::steady_clock::now() >= later; });
    EXPECT_EQ(engine_ends(), 0U);
}

}  // namespace
}  // namespace comfyd::fleet
