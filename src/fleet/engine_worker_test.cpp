#include "fleet/engine_worker.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "engine/nodes/all.hpp"
#include "fleet/test_support.hpp"

namespace comfyd {

// For the names of tests.
static void PrintTo(Code code, std::ostream* out) {
    *out << to_string(code);
}

}  // namespace comfyd

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;

class EngineWorkerTest : public FleetTest {
protected:
    EngineWorkerTest() {
        folders_ = {folder_.path() / "input", folder_.path() / "output", folder_.path() / "temp"};
        for (const auto& path : {folders_.input, folders_.output, folders_.temp}) {
            std::filesystem::create_directories(path);
        }
        engine::EngineOptions options;
        options.folders = folders_;
        options.threads = 2;
        engine_ = std::make_unique<engine::Core>(engine::make_registry(), options);
        make_bare_fleet();
        on_core([&] {
            EXPECT_TRUE(
                fleet_->add_engine(*engine_, {.id = "engine", .folders = folders_, .slots = 1})
            );
            fleet_->start();
        });
    }
    ~EngineWorkerTest() override {
        wait(fleet_->stop());
        on_core([&] { fleet_.reset(); });
    }
    RunResult run_here(jobs::Assignment assignment) {
        auto made = begin(std::move(assignment), "engine");
        return end(*made);
    }

    engine::Folders folders_;
    std::unique_ptr<engine::Core> engine_;
};

TEST_F(EngineWorkerTest, IsThereFromTheStart) {
    const auto info = worker_info("engine");
    EXPECT_EQ(info.status, "idle");
    EXPECT_EQ(info.url, "engine:");
    EXPECT_GT(info.node_classes, 3U);
    EXPECT_TRUE(fleet_->catalogue()->can_run("EmptyImage\nImageInvert\nSaveImage"));
    on_core([&] {
        const auto worker = fleet_->find("engine");
        EXPECT_TRUE(worker->can_run("EmptyImage\nSaveImage"));
        EXPECT_FALSE(worker->can_run("KSampler"));
    });
}

TEST_F(EngineWorkerTest, RunsAWorkflowAndStoresItsPicture) {
    auto made = begin(assignment(kPicture), "engine");
    const auto result = end(*made);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outputs.size(), 1U);
    EXPECT_EQ(result->outputs[0].type, "image");
    EXPECT_EQ(result->outputs[0].content_type, "image/png");
    EXPECT_TRUE(result->ui_outputs.contains("3"));
    const auto asset = wait(store_->get("local", result->outputs[0].asset));
    ASSERT_TRUE(asset);
    const auto bytes = wait(store_->read(*asset, 1'000'000));
    EXPECT_THAT(*bytes, HasSubstr("PNG"));
    const auto progress = made->recorder.progress();
    ASSERT_FALSE(progress.empty());
    EXPECT_EQ(progress.back().nodes_total, 3);
    EXPECT_LT(progress.back().value, 1);
    EXPECT_EQ(worker_info("engine").completed, 1U);
}

TEST_F(EngineWorkerTest, TheSameWorkflowAgainHasItsOutputsAgain) {
    const auto first = run_here(assignment(kPicture));
    const auto second = run_here(assignment(kPicture));
    ASSERT_TRUE(first && second);
    ASSERT_EQ(second->outputs.size(), 1U);
    EXPECT_EQ(first->outputs[0].hash, second->outputs[0].hash);
}

TEST_F(EngineWorkerTest, InputAssetsAreGivenToIt) {
    const auto made = run_here(assignment(kPicture));
    ASSERT_TRUE(made);
    const std::string id = made->outputs[0].asset.to_string();
    const auto result = run_here(assignment(
        R"({"1": {"class_type": "LoadImage", "inputs": {"image": {"__type": "core/ASSET", "info": {"id": ")" +
        id +
        R"("}}}}, "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "again"}}})"
    ));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outputs.size(), 1U);
}

TEST_F(EngineWorkerTest, ARefusedWorkflowSaysWhere) {
    const auto result = run_here(assignment(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": "wide", "height": 8, "batch_size": 1, "color": 0}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "x"}}})")
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::worker_rejected);
    EXPECT_THAT(result.error().message, HasSubstr("node 1 (EmptyImage)"));
    EXPECT_TRUE(result.error().details.at("node_errors").as_object().contains("1"));
    EXPECT_EQ(worker_info("engine").failed, 1U);
}

class EngineStop : public EngineWorkerTest, public testing::WithParamInterface<Code> {};

TEST_P(EngineStop, EndsTheRunWithItsReason) {
    auto made = begin(
        assignment(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 512, "height": 512, "batch_size": 4, "color": 5}},
        "2": {"class_type": "ImageScale", "inputs": {"image": ["1", 0], "upscale_method": "bicubic", "width": 2048,
              "height": 2048, "crop": "disabled"}},
        "3": {"class_type": "ImageScale", "inputs": {"image": ["2", 0], "upscale_method": "bicubic", "width": 3000,
              "height": 3000, "crop": "disabled"}},
        "4": {"class_type": "SaveImage", "inputs": {"images": ["3", 0], "filename_prefix": "x"}}})"
        ),
        "engine"
    );
    stop(*made, GetParam());
    const auto result = end(*made);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, GetParam());
    EXPECT_EQ(worker_info("engine").status, "idle");
}

INSTANTIATE_TEST_SUITE_P(
    All,
    EngineStop,
    testing::Values(Code::cancelled, Code::shutting_down, Code::deadline_exceeded),
    [](const auto& entry) { return std::string(to_string(entry.param)); }
);

TEST_F(EngineWorkerTest, ABrokenWorkflowIsRefused) {
    EXPECT_EQ(run_here(assignment("[1]")).error().code, Code::invalid_workflow);
}

}  // namespace
}  // namespace comfyd::fleet
