#include "fleet/fleet.hpp"

#include <gmock/gmock.h>

#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

using FleetRoomTest = FleetTest;

TEST_F(FleetRoomTest, AWorkerComesUpWithItsFacts) {
    make_fleet();
    EXPECT_EQ(worker_info().status, "starting");
    EXPECT_FALSE(fleet_->catalogue()->knows_workers());
    std::atomic<int> changes{0};
    on_core([&] {
        fleet_->on_change([&](const std::set<std::string>& workers) {
            EXPECT_EQ(workers, std::set<std::string>{"gpu"});
            ++changes;
        });
        fleet_->start();
    });
    ASSERT_TRUE(wait_for_status("idle"));
    const auto info = worker_info();
    EXPECT_EQ(info.version, "0.33.0");
    EXPECT_GT(info.node_classes, 5U);
    EXPECT_EQ(info.pool, "default");
    EXPECT_TRUE(fleet_->catalogue()->has_pool("default"));
    EXPECT_TRUE(support::wait_until([&] { return changes > 0; }));
    EXPECT_TRUE(fleet_->catalogue()->knows_workers());
    EXPECT_TRUE(fleet_->catalogue()->can_run("EmptyImage\nSaveImage"));
    on_core([&] {
        const auto worker = fleet_->find("gpu");
        EXPECT_TRUE(worker->available());
        EXPECT_TRUE(worker->can_run("EmptyImage\nSaveImage"));
        EXPECT_FALSE(worker->can_run("EmptyImage\nNobodyHasThis"));
        EXPECT_TRUE(worker->can_run(workflow::with_pool("EmptyImage\nSaveImage", "default")));
        EXPECT_FALSE(worker->can_run(workflow::with_pool("EmptyImage\nSaveImage", "gold")));
        EXPECT_THAT(worker->abilities(), testing::EndsWith("/default"));
        EXPECT_EQ(worker->load(), 0);
        EXPECT_EQ(fleet_->find("other"), nullptr);
        EXPECT_EQ(fleet_->workers().size(), 1U);
    });
    EXPECT_EQ(comfy_->sockets_open(), 1U);
}

TEST_F(FleetRoomTest, WorkersThatAreNotThereAreDownAndSayWhy) {
    make_bare_fleet();
    on_core([&] {
        EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = "http://127.0.0.1:1"}));
        fleet_->start();
    });
    ASSERT_TRUE(wait_for_status("down"));
    EXPECT_THAT(worker_info().last_error, testing::HasSubstr("refused"));
    EXPECT_EQ(run(assignment(kPicture)).error().code, Code::worker_unavailable);
}

TEST_F(FleetRoomTest, BadConfigurationIsRefused) {
    make_bare_fleet();
    on_core([&] {
        EXPECT_EQ(
            fleet_->add_comfyui({.id = "", .url = "nonsense"}).error().code, Code::invalid_argument
        );
        EXPECT_EQ(
            fleet_->add_comfyui({.id = "", .url = "ftp://x"}).error().code, Code::invalid_argument
        );
        EXPECT_EQ(
            fleet_->add_comfyui({.id = "a", .url = "http://x", .slots = 0}).error().code,
            Code::invalid_argument
        );
        EXPECT_TRUE(fleet_->add_comfyui({.id = "", .url = "http://127.0.0.1:8188"}));
        EXPECT_EQ(
            fleet_->add_comfyui({.id = "127.0.0.1:8188", .url = "http://x"}).error().code,
            Code::conflict
        );
        EXPECT_NE(fleet_->find("127.0.0.1:8188"), nullptr);
        EXPECT_EQ(fleet_->drain("nobody").error().code, Code::not_found);
    });
}

TEST_F(FleetRoomTest, ADrainingWorkerGetsNothingMore) {
    start();
    on_core([&] {
        EXPECT_TRUE(fleet_->drain("gpu"));
        EXPECT_FALSE(fleet_->find("gpu")->available());
    });
    EXPECT_EQ(worker_info().status, "draining");
    on_core([&] {
        EXPECT_TRUE(fleet_->resume("gpu"));
        EXPECT_TRUE(fleet_->find("gpu")->available());
    });
}

TEST_F(FleetRoomTest, AnAttemptCountsFromTheCallOn) {
    start();
    on_core([&] {
        const auto worker = fleet_->find("gpu");
        Recorder recorder;
        jobs::StopRequest stop(core_.executor());
        {
            const auto task = worker->run(assignment(kPicture), recorder, stop);
            EXPECT_FALSE(worker->available());
            EXPECT_EQ(worker->info().status, "running");
            EXPECT_GT(worker->load(), 0);
        }
        EXPECT_TRUE(worker->available()) << "a task that is dropped gives its place back";
    });
}

TEST_F(FleetRoomTest, ALateWorkerIsNoticed) {
    make_fleet();
    comfy_->stop();
    on_core([&] { fleet_->start(); });
    ASSERT_TRUE(wait_for_status("down"));
    comfy_->start();
    ASSERT_TRUE(wait_for_status("idle"));
    EXPECT_EQ(worker_info().last_error, "");
}

TEST_F(FleetRoomTest, TheSocketComesBackAfterARestart) {
    start();
    comfy_->crash();
    ASSERT_TRUE(wait_for_status("down"));
    comfy_->start();
    ASSERT_TRUE(wait_for_status("idle"));
    EXPECT_TRUE(support::wait_until([&] { return comfy_->sockets_open() == 1; }));
    EXPECT_TRUE(fleet_->catalogue()->knows_workers());
}

TEST_F(FleetRoomTest, SlowAnswersAreTolerated) {
    start();
    support::Faults faults;
    faults.slow_http = 150;
    comfy_->set_faults(faults);
    const auto result = run(assignment(kPicture));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(worker_info().status, "idle");
}

TEST_F(FleetRoomTest, EqualWorkersShareTheirClasses) {
    start();
    on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "twin", .url = comfy_->url()})); });
    ASSERT_TRUE(support::wait_until([&] { return worker_info("twin").status == "idle"; }));
    const auto catalogue = fleet_->catalogue();
    ASSERT_EQ(catalogue->workers().size(), 2U);
    EXPECT_EQ(catalogue->workers()[0].classes, catalogue->workers()[1].classes);
}

}  // namespace
}  // namespace comfyd::fleet
