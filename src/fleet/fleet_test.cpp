#include "fleet/fleet.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

using FleetRoomTest = FleetTest;

TEST_F(FleetRoomTest, AWorkerComesUpWithItsFacts) {
    make_fleet();
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::starting);
    EXPECT_FALSE(fleet_->catalogue()->knows_workers());
    std::atomic<int> changes{0};
    on_core([&] {
        fleet_->on_change([&](const std::set<std::string>& workers) {
            EXPECT_EQ(workers, std::set<std::string>{"gpu"});
            ++changes;
        });
        fleet_->start();
    });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    const auto info = worker_info();
    EXPECT_EQ(info.version, "0.33.0");
    EXPECT_GT(info.node_classes, 5U);
    EXPECT_EQ(info.pool, "default");
    EXPECT_TRUE(fleet_->catalogue()->has_pool("default"));
    EXPECT_TRUE(support::wait_until([&] { return changes > 0; }));
    EXPECT_TRUE(fleet_->catalogue()->knows_workers());
    EXPECT_TRUE(fleet_->catalogue()->can_run(Requirement::decode("EmptyImage\nSaveImage")));
    on_core([&] {
        const auto worker = fleet_->find("gpu");
        EXPECT_TRUE(worker->available());
        EXPECT_TRUE(worker->can_run(Requirement::decode("EmptyImage\nSaveImage")));
        EXPECT_FALSE(worker->can_run(Requirement::decode("EmptyImage\nNobodyHasThis")));
        EXPECT_TRUE(worker->can_run(Requirement::decode("EmptyImage\nSaveImage").in_pool("default"))
        );
        EXPECT_FALSE(worker->can_run(Requirement::decode("EmptyImage\nSaveImage").in_pool("gold")));
        EXPECT_THAT(worker->abilities(), testing::HasSubstr("/default/"));
        EXPECT_EQ(fleet_->find("other"), nullptr);
        EXPECT_EQ(fleet_->workers().size(), 1U);
    });
    EXPECT_EQ(comfy_->sockets_open(), 1U);
}

// The core does nothing from the first message of a run until its picture is stored.
TEST_F(FleetRoomTest, ARunGoesOnWhileTheCoreIsHeldUp) {
    support::DoubleOptions options;
    options.output_bytes = 100'000;  // a file, not bytes that wait for the end of the job
    start(options);
    const auto is_stored = [&] {
        const auto blobs = files_.folder.path() / "assets" / "blobs";
        const auto entries = std::filesystem::recursive_directory_iterator(blobs);
        return std::ranges::any_of(entries, [](const auto& entry) {
            return entry.is_regular_file();
        });
    };
    std::atomic<bool> was_stored{false};
    auto run =
        begin(assignment(kPicture), "gpu", [&] { was_stored = support::wait_until(is_stored); });
    EXPECT_TRUE(end(*run));
    EXPECT_TRUE(was_stored);
    EXPECT_EQ(run->recorder.outputs(), 1U);
    EXPECT_EQ(worker_info().completed, 1U);
}

TEST_F(FleetRoomTest, LargeOutputsArriveWhole) {
    support::DoubleOptions options;
    options.output_bytes = 6'000'000;  // more than is held in memory
    start(options);
    const auto result = run(assignment(kPicture));
    ASSERT_TRUE(result) << result.error().message;
    const jobs::Output& output = result->outputs.at(0);
    EXPECT_GE(output.size_bytes, 6'000'000U);
    assets::Asset stored;
    stored.hash = output.hash;
    stored.size_bytes = output.size_bytes;
    const auto content = wait(store_->content(std::move(stored)));
    ASSERT_TRUE(content);
    EXPECT_EQ(
        std::filesystem::file_size(std::get<std::filesystem::path>(*content)), output.size_bytes
    );
}

TEST_F(FleetRoomTest, WorkersAreSpreadOverTheLanes) {
    comfy_ =
        std::make_unique<support::ComfyDouble>(double_thread_.context(), support::DoubleOptions());
    comfy_->start();
    net::IoThread other_io("other-io");
    net::Client other_http(other_io.executor(), net::ClientOptions{});
    http_ = std::make_unique<net::Client>(io_.executor(), net::ClientOptions{});
    on_core([&] {
        std::vector<Lane> lanes{{io_.executor(), *http_}, {other_io.executor(), other_http}};
        fleet_ = std::make_unique<Fleet>(
            core_.executor(),
            clock_,
            std::move(lanes),
            *store_,
            pool_,
            classes_,
            node_costs_,
            options_
        );
        EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = comfy_->url()}));
        EXPECT_TRUE(fleet_->add_comfyui({.id = "second", .url = comfy_->url()}));
        fleet_->start();
    });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    EXPECT_EQ(
        worker_info("second").status, jobs::WorkerStatus::starting
    );  // its thread does not run yet
    other_io.start();
    EXPECT_TRUE(support::wait_until([&] {
        return worker_info("second").status == jobs::WorkerStatus::idle;
    }));
    wait(fleet_->stop());
    on_core([&] { fleet_.reset(); });
    other_io.stop();
}

TEST_F(FleetRoomTest, WorkersThatAreNotThereAreDownAndSayWhy) {
    make_bare_fleet();
    on_core([&] {
        EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = "http://127.0.0.1:1"}));
        fleet_->start();
    });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::down));
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
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::draining);
    on_core([&] {
        EXPECT_TRUE(fleet_->resume("gpu"));
        EXPECT_TRUE(fleet_->find("gpu")->available());
    });
}

// Its ComfyUI is to be made anew, which needs a moment without work.
TEST_F(FleetRoomTest, AWorkerWhoseAgentAsksForARestGetsNothingUntilItHadIt) {
    options_.agent_interval = Millis(20);
    start({.agent = true});
    support::Faults faults;
    faults.wants_rest = true;
    comfy_->set_faults(faults);
    const auto is_available = [this] {
        return on_core([this] { return fleet_->find("gpu")->available(); });
    };
    ASSERT_TRUE(support::wait_until([&] { return !is_available(); }));
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::draining);
    comfy_->set_faults({});
    EXPECT_TRUE(support::wait_until(is_available));
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::idle);
}

// It is asked again in its turn, after a longer and longer while; who hears of it need not wait.
TEST_F(FleetRoomTest, AWorkerThatIsHeardOfIsLookedAtAtOnce) {
    options_.backoff_min = options_.backoff_max = std::chrono::hours(1);
    start();
    comfy_->crash();
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::down));
    comfy_->start();
    on_core([&] { fleet_->hear_ready("nobody"); });
    on_core([&] { fleet_->hear_ready("gpu"); });
    EXPECT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
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
            EXPECT_EQ(worker->info().status, jobs::WorkerStatus::running);
        }
        EXPECT_TRUE(worker->available()) << "a task that is dropped gives its place back";
    });
}

TEST_F(FleetRoomTest, ALateWorkerIsNoticed) {
    make_fleet();
    comfy_->stop();
    on_core([&] { fleet_->start(); });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::down));
    comfy_->start();
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    EXPECT_EQ(worker_info().last_error, "");
}

TEST_F(FleetRoomTest, TheSocketComesBackAfterARestart) {
    start();
    comfy_->crash();
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::down));
    comfy_->start();
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
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
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::idle);
}

constexpr const char* kPicky = R"json({
"Picky": {"input": {"required": {"word": ["STRING", {}]}, "optional": {"image": ["IMAGE"]}},
          "output": [], "name": "Picky", "python_module": "custom_nodes.picky", "output_node": true,
          "_own_check": {"inputs": ["cls", "word"], "refuses": "bad"}}})json";

TEST_F(FleetRoomTest, AWorkerWithTheNodePackJudgesPrompts) {
    start({.nodes_json = kPicky, .batch_pack = true});
    const auto judge = [this](const std::string& word, std::string requirement = "Picky") {
        json::object prompt{{"1", {{"class_type", "Picky"}, {"inputs", {{"word", word}}}}}};
        return wait(
            fleet_->judge(std::move(prompt), {}, Requirement::decode(std::move(requirement)))
        );
    };
    const auto good = judge("good");
    ASSERT_TRUE(good);
    EXPECT_TRUE(good->accepted);
    EXPECT_EQ(good->outputs_to_execute, std::vector<std::string>{"1"});
    const auto bad = judge("bad");
    ASSERT_TRUE(bad);
    EXPECT_FALSE(bad->accepted);
    EXPECT_EQ(bad->error.at("type"), "prompt_outputs_failed_validation");
    EXPECT_TRUE(bad->node_errors.contains("1"));
    EXPECT_FALSE(judge("bad", "NobodyHasThis")) << "only who can run it may say";
    EXPECT_EQ(comfy_->accepted_prompts().size(), 0U);
    EXPECT_TRUE(fleet_->catalogue()->needs_worker_to_judge(
        {{"1", {{"class_type", "Picky"}, {"inputs", json::object()}}}}
    ));
    EXPECT_FALSE(fleet_->catalogue()->needs_worker_to_judge(
        {{"1", {{"class_type", "LoadImage"}, {"inputs", json::object()}}}}
    )) << "whether a file is there is known here";
}

TEST_F(FleetRoomTest, AnotherFileStandsForOneThatIsStillToBeSent) {
    support::DoubleOptions options{.nodes_json = kPicky, .batch_pack = true};
    make_fleet(std::move(options));
    comfy_->add_input("any.png", "bytes");
    on_core([&] { fleet_->start(); });
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    const json::object asset{{"__type", "core/ASSET"}, {"info", {{"hash", "blake3:00"}}}};
    json::object prompt{
        {"1", {{"class_type", "LoadImage"}, {"inputs", {{"image", asset}}}}},
        {"2", {{"class_type", "Picky"}, {"inputs", {{"word", "x"}, {"image", json::array{"1", 0}}}}}
        },
    };
    const auto verdict =
        wait(fleet_->judge(std::move(prompt), {}, Requirement::decode("LoadImage\nPicky")));
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(verdict->accepted) << json::serialize(verdict->node_errors);
}

TEST_F(FleetRoomTest, WithoutTheNodePackNobodyJudges) {
    start({.nodes_json = kPicky});
    json::object prompt{{"1", {{"class_type", "Picky"}, {"inputs", {{"word", "bad"}}}}}};
    EXPECT_FALSE(fleet_->catalogue()->needs_worker_to_judge(prompt));
    EXPECT_FALSE(wait(fleet_->judge(std::move(prompt), {}, Requirement::decode("Picky"))));
}

TEST_F(FleetRoomTest, AWorkerTellsTheNewNamesOfOldClasses) {
    start({.replacements_json = R"({"Old": [{"new_node_id": "SaveImage"}]})"});
    EXPECT_TRUE(fleet_->catalogue()->replacements().contains("Old"));
}

TEST_F(FleetRoomTest, AnOlderWorkerHasNoNewNames) {
    start({.version = "0.7.0", .replacements_json = R"({"Old": []})"});
    EXPECT_TRUE(fleet_->catalogue()->replacements().empty());
}

TEST_F(FleetRoomTest, EqualWorkersShareTheirClasses) {
    start();
    on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "twin", .url = comfy_->url()})); });
    ASSERT_TRUE(support::wait_until([&] {
        return worker_info("twin").status == jobs::WorkerStatus::idle;
    }));
    const auto catalogue = fleet_->catalogue();
    ASSERT_EQ(catalogue->workers().size(), 2U);
    EXPECT_EQ(catalogue->workers()[0].classes, catalogue->workers()[1].classes);
}

}  // namespace
}  // namespace comfyd::fleet
