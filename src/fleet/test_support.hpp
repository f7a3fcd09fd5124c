// What the fleet's tests are written with: a core thread, an io thread, a store over records in
// memory, doubles of ComfyUI, and a fleet with short times. Test code only.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "assets/test_support.hpp"
#include "base/wait_for.hpp"
#include "fleet/fleet.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::fleet {

// Keeps what an attempt tells. Written on the core thread, read by the test.
class Recorder final : public jobs::AttemptListener {
public:
    // Before the attempt; called on the core thread.
    std::function<void()> at_first_progress;
    bool wants_messages = false;
    bool waits_for_progress = true;

    bool wants_progress() const override { return waits_for_progress; }
    bool wants_worker_messages() const override { return wants_messages; }
    void on_worker_message(jobs::WorkerMessage said) override {
        const std::lock_guard lock(mutex_);
        said_.push_back(std::move(said.type));
    }
    std::vector<std::string> said() const {
        const std::lock_guard lock(mutex_);
        return said_;
    }

    void on_progress(const jobs::Progress& progress) override {
        if (auto call = std::exchange(at_first_progress, nullptr)) {
            call();
        }
        const std::lock_guard lock(mutex_);
        progress_.push_back(progress);
    }
    void on_preview(std::string bytes, std::string content_type) override {
        const std::lock_guard lock(mutex_);
        previews_.emplace_back(std::move(bytes), std::move(content_type));
    }
    void on_output(const jobs::Output& output) override {
        const std::lock_guard lock(mutex_);
        outputs_.push_back(output);
    }
    void on_usage(const jobs::Usage& usage) override {
        const std::lock_guard lock(mutex_);
        usage_ = usage;
    }
    void on_kept(jobs::AttemptResult result) override {
        const std::lock_guard lock(mutex_);
        kept_ = std::move(result);
    }
    std::optional<jobs::AttemptResult> kept() const {
        const std::lock_guard lock(mutex_);
        return kept_;
    }
    std::optional<jobs::Usage> usage() const {
        const std::lock_guard lock(mutex_);
        return usage_;
    }
    std::vector<jobs::Progress> progress() const {
        const std::lock_guard lock(mutex_);
        return progress_;
    }
    std::size_t previews() const {
        const std::lock_guard lock(mutex_);
        return previews_.size();
    }
    std::size_t outputs() const {
        const std::lock_guard lock(mutex_);
        return outputs_.size();
    }

private:
    mutable std::mutex mutex_;
    std::vector<jobs::Progress> progress_;
    std::vector<std::pair<std::string, std::string>> previews_;
    std::vector<std::string> said_;  // types of messages
    std::vector<jobs::Output> outputs_;
    std::optional<jobs::Usage> usage_;
    std::optional<jobs::AttemptResult> kept_;
};

inline assets::NewAsset new_input(std::string tenant, std::string file_path) {
    assets::NewAsset asset;
    asset.tenant = std::move(tenant);
    asset.file_path = std::move(file_path);
    return asset;
}

inline FleetOptions quick_options() {
    FleetOptions options;
    options.health_interval = Millis(50);
    options.health_retry = Millis(20);
    options.backoff_min = Millis(10);
    options.backoff_max = Millis(50);
    options.reconnect_delay = Millis(10);
    options.poll_interval = Millis(50);
    options.poll_interval_slow = Millis(200);
    options.settle = Millis(60);
    options.end_grace = Millis(20);
    options.lost_after = Millis(1'000);
    options.refused_span = Millis(50);
    options.dead_after = Millis(300);
    options.cancel_poll = Millis(10);
    options.cancel_grace = Millis(5'000);
    options.download_retry = Millis(10);
    return options;
}

struct StoreForTests {
    StoreForTests() : pool(2), store({folder.path() / "assets"}, records, clock, pool) {
        EXPECT_TRUE(store.open());
    }
    support::TempDir folder;
    SystemClock clock;
    assets::test::MemoryCatalogue records;
    Pool pool;
    assets::Store store;
};

class FleetTest : public testing::Test {
protected:
    using RunResult = Result<jobs::AttemptResult>;

    template <class Function>
    static auto on(Executor executor, Function function) {
        std::packaged_task<decltype(function())()> task(std::move(function));
        auto done = task.get_future();
        boost::asio::post(executor, [&task] { task(); });
        return done.get();
    }
    template <class Function>
    auto on_core(Function function) {
        return on(core_.executor(), std::move(function));
    }
    template <class Value>
    Value wait(Task<Value> task) {
        return comfyd::wait_for(core_.executor(), std::move(task));
    }

    FleetTest()
        : core_("core"),
          io_("io"),
          double_thread_("double"),
          pool_(files_.pool),
          store_(&files_.store),
          options_(quick_options()) {
        core_.start();
        io_.start();
        double_thread_.start();
    }

    ~FleetTest() override {
        if (fleet_) {
            wait(fleet_->stop());
            on_core([&] { fleet_.reset(); });
        }
        on(io_.executor(), [&] { http_.reset(); });
        comfy_.reset();
        io_.stop();
        core_.stop();
        double_thread_.stop();
    }

    // A fleet with one double as its worker "gpu", not started yet.
    void make_fleet(support::DoubleOptions options = {}) {
        comfy_ =
            std::make_unique<support::ComfyDouble>(double_thread_.context(), std::move(options));
        comfy_->start();
        make_bare_fleet();
        on_core([&] { EXPECT_TRUE(fleet_->add_comfyui({.id = "gpu", .url = comfy_->url()})); });
    }
    void make_bare_fleet() {
        on_core([&] {
            http_ = std::make_unique<net::Client>(io_.executor(), net::ClientOptions{});
            fleet_ = std::make_unique<Fleet>(
                core_.executor(),
                clock_,
                std::vector{Lane{io_.executor(), *http_}},
                *store_,
                pool_,
                classes_,
                node_costs_,
                options_
            );
        });
    }
    // … and its worker is up.
    void start(support::DoubleOptions options = {}) {
        make_fleet(std::move(options));
        on_core([&] { fleet_->start(); });
        ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    }
    bool wait_for_status(jobs::WorkerStatus status) {
        return support::wait_until([&] { return worker_info().status == status; });
    }
    jobs::WorkerInfo worker_info(const std::string& id = "gpu") {
        return on_core([&] { return fleet_->find(id)->info(); });
    }

    jobs::Assignment assignment(std::string workflow) {
        jobs::Assignment made;
        made.job = JobId::make(clock_.now());
        made.prompt = PromptId::make(clock_.now());
        made.tenant = "local";
        made.workflow = std::move(workflow);
        made.timeout = Millis(20'000);
        return made;
    }

    // An attempt under way.
    struct Run {
        explicit Run(Executor core) : stop(core), group(core) {}
        jobs::StopRequest stop;
        Recorder recorder;
        TaskGroup group;
        std::promise<RunResult> promise;
        std::future<RunResult> result = promise.get_future();
        jobs::Assignment assignment;
    };
    std::unique_ptr<Run> begin(
        jobs::Assignment assignment,
        const std::string& worker = "gpu",
        std::function<void()> at_first_progress = {}
    ) {
        auto run = std::make_unique<Run>(core_.executor());
        run->recorder.at_first_progress = std::move(at_first_progress);
        run->recorder.wants_messages = wants_messages_;
        run->recorder.waits_for_progress = wants_progress_;
        run->assignment = assignment;
        on_core([&] {
            run->group.spawn("run", attempt(*run, fleet_->find(worker), std::move(assignment)));
        });
        return run;
    }
    RunResult end(Run& run) {
        if (run.result.wait_for(support::kDeadline) != std::future_status::ready) {
            ADD_FAILURE() << "the attempt does not end";
            std::abort();
        }
        auto result = run.result.get();
        wait(run.group.join());
        if (result) {
            record_outputs(run, *result);
        }
        return result;
    }
    // As the ledger does with the end of a job.
    void record_outputs(const Run& run, const jobs::AttemptResult& result) {
        for (const jobs::Output& output : result.outputs) {
            assets::Asset asset;
            asset.id = output.asset;
            asset.tenant = run.assignment.tenant;
            asset.hash = output.hash;
            asset.size_bytes = output.size_bytes;
            asset.content_type = output.content_type;
            asset.job = run.assignment.job;
            asset.bytes = output.bytes;
            asset.generation = output.generation;
            EXPECT_TRUE(wait(files_.records.add(asset)));
        }
    }
    void stop(Run& run, Code why) {
        on_core([&] { run.stop.stop(why); });
    }
    RunResult run(jobs::Assignment assignment) {
        auto made = begin(std::move(assignment));
        return end(*made);
    }
    std::uint64_t executions(const PromptId& prompt) {
        const auto counts = comfy_->executions();
        const auto found = counts.by_prompt_id.find(prompt.to_string());
        return found == counts.by_prompt_id.end() ? 0 : found->second;
    }

    support::TempDir folder_;
    SystemClock clock_;
    net::IoThread core_;
    net::IoThread io_;  // where the workers' sockets live
    net::IoThread double_thread_;
    StoreForTests files_;  // after the threads: its pool posts to them until it is gone
    Pool& pool_;
    ClassCache classes_{pool_};
    NodeCosts node_costs_;
    assets::Store* store_;
    FleetOptions options_;
    bool wants_messages_ = false;  // of runs that are begun
    bool wants_progress_ = true;   // likewise
    std::unique_ptr<support::ComfyDouble> comfy_;
    std::unique_ptr<net::Client> http_;
    std::unique_ptr<Fleet> fleet_;

private:
    static Task<> attempt(
        Run& run, std::shared_ptr<jobs::Worker> worker, jobs::Assignment assignment
    ) {
        auto result = co_await worker->run(std::move(assignment), run.recorder, run.stop);
        run.promise.set_value(std::move(result));
    }
};

inline const char* const kPicture = R"({
    "1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 111}},
    "2": {"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}},
    "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": "test"}}})";

// The same with a fault of its own: see support/double/faults.hpp.
inline std::string picture_with(const std::string& fault) {
    auto prompt = *json::parse_object(kPicture);
    prompt.at("2").at("inputs").as_object()["_fault"] = fault;
    return json::serialize(prompt);
}

}  // namespace comfyd::fleet
