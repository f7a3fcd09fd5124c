// Pools that are kept, over the real fleet: machines whose ComfyUI is the double.
#include "fleet/instances/kept_pools.hpp"

#include <gmock/gmock.h>

#include "fleet/instances/memory_store.hpp"
#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;
using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

// Has what it was told to have: every machine runs at once, at the address of the double.
class Rack final : public MachineProvider {
public:
    explicit Rack(std::string url) : url_(std::move(url)) {}

    std::string_view name() const override { return "rack"; }
    MachineTraits traits() const override { return {.is_local = true}; }
    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override {
        wishes.push_back(wish);
        if (!stock.empty()) {
            co_return stock;
        }
        Offer offer;
        offer.id = "any";
        offer.gpu_memory_bytes = promised;
        offer.usd_per_hour = 0.36;
        co_return std::vector{offer};
    }
    Task<Result<std::string>> create(MachineOrder order) override {
        if (refusal) {
            co_return fail(*refusal, "not today");
        }
        orders.push_back(order);
        Machine machine;
        machine.id = "m" + std::to_string(orders.size());
        machine.name = order.name;
        machine.state = Machine::State::running;
        machine.url = url_;
        machines[machine.id] = machine;
        co_return machine.id;
    }
    Task<Result<std::vector<Machine>>> list(std::string) override {
        std::vector<Machine> all;
        for (const auto& [id, machine] : machines) {
            all.push_back(machine);
        }
        co_return all;
    }
    Task<Result<>> start(std::string) override { co_return Result<>(); }
    Task<Result<>> stop(std::string) override { co_return Result<>(); }
    Task<Result<>> remove(std::string id) override {
        machines.erase(id);
        co_return Result<>();
    }
    Task<Result<std::string>> logs(std::string id, int lines) override {
        std::string told = id + " printed " + std::to_string(lines) + " lines\n";
        for (const auto* variables :
             {&orders.back().secrets, &orders.back().made_from.environment}) {
            for (const auto& [name, value] : *variables) {
                told.append(name).append("=").append(value).append("\n");
            }
        }
        co_return told;
    }
    void on_change(std::function<void()>) override {}
    Task<> end() override { co_return; }

    std::map<std::string, Machine> machines;
    std::vector<MachineOrder> orders;
    std::vector<OfferWish> wishes;
    std::vector<Offer> stock;  // what it has; empty: one of any kind
    std::optional<Code> refusal;
    std::uint64_t promised = 0;

private:
    const std::string url_;
};

class KeptPoolsTest : public FleetTest {
protected:
    KeptPoolsTest() {
        settings_.name = "gpu";
        settings_.size = 1;
        settings_.offers = {{"rack", {}}};
        settings_.warm_up = kPicture;
        settings_.drain_max = Millis(0);
    }
    ~KeptPoolsTest() override { close(); }

    void open() {
        if (!comfy_) {
            comfy_ =
                std::make_unique<support::ComfyDouble>(double_thread_.context(), double_options_);
            comfy_->start();
            rack_ = std::make_shared<Rack>(comfy_->url());
        }
        make_bare_fleet();
        on_core([&] {
            KeptPools::Parts parts{
                .core = core_.executor(),
                .clock = clock_,
                .lane = {io_.executor(), *http_},
                .pool = pool_,
                .store = instances_,
                .providers = {{"rack", rack_}},
                .fleet = "main",
                .domain = "main",
                .pools = {settings_},
                .load = [this] { return std::optional(load_); },
            };
            parts.times = {
                .tick = Millis(10),
                .idle_tick = Millis(10),
                .list_busy = Millis(10),
                .list_idle = Millis(10),
                .examine_again = Millis(10),
            };
            kept_ = std::make_unique<KeptPools>(std::move(parts));
            EXPECT_TRUE(kept_->begin(*fleet_));
        });
        boost::asio::co_spawn(core_.executor(), kept_->recall(), boost::asio::use_future).get();
        on_core([&] {
            fleet_->start();
            kept_->start();
        });
    }
    // As at the end of the process: machines stay.
    void close() {
        if (kept_) {
            boost::asio::co_spawn(core_.executor(), kept_->end(), boost::asio::use_future).get();
            wait(fleet_->stop());
            on_core([&] {
                kept_.reset();
                fleet_.reset();
            });
        }
    }

    std::vector<Instance> rows() {
        return on_core([&] { return kept_->keeper().instances(); });
    }
    bool has_ready(std::size_t count) {
        return support::wait_until([&] {
            const auto all = rows();
            return all.size() == count &&
                   std::ranges::all_of(all, [](const Instance& row) { return row.state == ready; });
        });
    }
    bool is_worker(const std::string& id) {
        return support::wait_until([&] {
            return on_core([&] {
                const auto worker = fleet_->find(id);
                return worker && worker->info().status == jobs::WorkerStatus::idle;
            });
        });
    }
    std::vector<std::string> events() {
        std::vector<std::string> told;
        const auto all = wait(instances_.fleet_events({.fleet = "main"}));
        for (const FleetEvent& event : *all) {
            told.push_back(event.what);
        }
        return told;
    }
    PoolRecord record() {
        const auto all = wait(instances_.pool_records("main"));
        return all->empty() ? PoolRecord() : all->front();
    }
    void resize(int size) {
        PoolRecord changed = record();
        changed.fleet = "main";
        changed.name = "gpu";
        changed.size = size;
        changed.size_configured = settings_.size;
        changed.revision += 1;
        EXPECT_TRUE(wait(instances_.save_pool(changed, std::nullopt)));
    }

    PoolSettings settings_;
    support::DoubleOptions double_options_;
    MemoryInstances instances_;
    jobs::Load load_;
    std::shared_ptr<Rack> rack_;
    std::unique_ptr<KeptPools> kept_;
};

TEST_F(KeptPoolsTest, AMachineIsStartedWarmedUpAndServes) {
    open();
    ASSERT_TRUE(has_ready(1));
    const Instance row = rows().front();
    EXPECT_EQ(comfy_->accepted_prompts().size(), 1U) << "the warm-up";
    const auto phases = on_core([&] { return kept_->keeper().counts().phases; });
    EXPECT_EQ(std::ranges::count(phases.at(warming).counts, 1U), 1);
    ASSERT_TRUE(is_worker(row.worker()));
    const auto done = begin(assignment(kPicture), row.worker());
    EXPECT_TRUE(end(*done));
    const MachineOrder order = on_core([&] { return rack_->orders.front(); });
    EXPECT_EQ(order.name, "comfyd-main-" + row.id);
    EXPECT_EQ(order.secrets.at("COMFYD_INSTANCE"), row.id);
    EXPECT_EQ(order.secrets.at("COMFYD_WORKER_TOKEN").size(), 48U);
    EXPECT_FALSE(order.secrets.contains("COMFYD_GATEWAY"));
    EXPECT_THAT(
        events(), testing::ElementsAre("ready", "warming", "starting", "creating", "requested")
    );
    EXPECT_THAT(
        wait(kept_->keeper().logs(row.id, 7)).value_or(""), HasSubstr("m1 printed 7 lines\n")
    );
    EXPECT_EQ(wait(kept_->keeper().logs("nobody", 7)).error().code, Code::not_found);
}

TEST_F(KeptPoolsTest, OneThatIsOnItsWayIsShownAndGetsNothing) {
    comfy_ =
        std::make_unique<support::ComfyDouble>(double_thread_.context(), support::DoubleOptions{});
    comfy_->start();
    rack_ = std::make_shared<Rack>(comfy_->url());
    comfy_->stop();
    open();
    ASSERT_TRUE(support::wait_until([&] {
        return on_core([&] { return fleet_->workers().size() == 1; });
    }));
    const auto coming = on_core([&] { return fleet_->workers().front(); });
    EXPECT_THAT(on_core([&] { return coming->info().machine; }), HasSubstr("comfyd-main-"));
    EXPECT_EQ(on_core([&] { return coming->info().status; }), jobs::WorkerStatus::starting);
    EXPECT_FALSE(on_core([&] { return coming->available(); }));
    const std::string id = on_core([&] { return coming->id(); });
    EXPECT_EQ(on_core([&] { return fleet_->find(id); }), coming);
    comfy_->start();
    ASSERT_TRUE(is_worker(id)) << "then it is the worker of that name";
    EXPECT_EQ(on_core([&] { return fleet_->workers().size(); }), 1U);
    on_core([&] { rack_->machines.begin()->second.state = Machine::State::failed; });
    EXPECT_TRUE(support::wait_until([&] {
        return on_core([&] { return fleet_->find(id) == nullptr; });
    }));
}

// The cheapest that is enough, though the offer's first is another.
TEST_F(KeptPoolsTest, WhatWaitingJobsNeedIsOrdered) {
    constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;
    comfy_ = std::make_unique<support::ComfyDouble>(
        double_thread_.context(),
        support::DoubleOptions{.gpu = "NVIDIA L40S", .vram_total = 45LL * 1024 * 1024 * 1024}
    );
    comfy_->start();
    rack_ = std::make_shared<Rack>(comfy_->url());
    rack_->stock = {
        {.id = "1", .gpu = "RTX 4090", .gpu_memory_bytes = 24 * kGiB, .region = "eu"},
        {.id = "2", .gpu = "H200", .gpu_memory_bytes = 141 * kGiB, .region = "eu"},
        {.id = "3", .gpu = "L40S", .gpu_memory_bytes = 48 * kGiB, .region = "eu"},
        {.id = "4", .gpu = "L40S", .gpu_memory_bytes = 48 * kGiB, .region = "us"},
    };
    jobs::Load::Waiting waiting;
    waiting.machine = {.region = "us", .memory_gb = 40};
    waiting.jobs = 3;
    load_.waiting = {waiting};
    open();
    ASSERT_TRUE(has_ready(1));
    EXPECT_EQ(on_core([&] { return rack_->orders.front().offer.id; }), "4");
    EXPECT_EQ(on_core([&] { return rack_->wishes.front().region; }), "us");
    const std::string id = rows().front().worker();
    ASSERT_TRUE(is_worker(id));
    const auto info = on_core([&] { return fleet_->find(id)->info(); });
    EXPECT_EQ(info.region, "us");
    EXPECT_EQ(info.machine, rows().front().name());
    const auto can_run = [&](const MachineWish& wish) {
        return on_core([&] { return fleet_->find(id)->can_run(Requirement().on(wish)); });
    };
    EXPECT_TRUE(support::wait_until([&] {
        return can_run({.gpu = "L40S", .region = "us", .memory_gb = 44});
    }));
    EXPECT_FALSE(can_run({.region = "eu"}));
}

TEST_F(KeptPoolsTest, AMachineThatTellsNoRegionIsWhereItsOfferSays) {
    settings_.offers = {{"rack", {}, "eu"}};
    open();
    ASSERT_TRUE(has_ready(1));
    const std::string id = rows().front().worker();
    ASSERT_TRUE(is_worker(id));
    EXPECT_EQ(on_core([&] { return fleet_->find(id)->info().region; }), "eu");
}

// Nor is it wherever a job wants it to be.
TEST_F(KeptPoolsTest, ARegionThatNobodyHasIsNotMadeUp) {
    jobs::Load::Waiting waiting;
    waiting.machine = {.region = "mars"};
    waiting.jobs = 1;
    load_.waiting = {waiting};
    open();
    ASSERT_TRUE(has_ready(1));
    EXPECT_EQ(rows().front().offer.region, "");
    EXPECT_THAT(events(), Contains("out_of_stock"));
}

TEST_F(KeptPoolsTest, ALogShowsNoSecretOfTheMachine) {
    settings_.made_from.environment = {
        {"HF_TOKEN", "hf_nobody-may-see"}, {"api_key", "hidden too"}, {"MODE", "fast-and-loose"}
    };
    open();
    ASSERT_TRUE(has_ready(1));
    const std::string id = rows().front().id;
    const auto log = wait(kept_->keeper().logs(id, 7));
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_THAT(*log, HasSubstr("printed 7 lines\n"));
    EXPECT_THAT(*log, HasSubstr("MODE=fast-and-loose\n"));
    EXPECT_THAT(*log, HasSubstr("HF_TOKEN=***\n"));
    EXPECT_THAT(*log, HasSubstr("api_key=***\n"));
    EXPECT_THAT(*log, HasSubstr("COMFYD_WORKER_TOKEN=***\n"));
}

TEST_F(KeptPoolsTest, NorDoesWhyAMachineFailed) {
    settings_.made_from.environment = {{"HF_TOKEN", "hf_nobody-may-see"}};
    open();
    ASSERT_TRUE(has_ready(1));
    on_core([&] {
        Machine& machine = rack_->machines.begin()->second;
        machine.state = Machine::State::failed;
        machine.reason = "its agent has ended: no such token: hf_nobody-may-see";
    });
    ASSERT_TRUE(support::wait_until([&] {
        return !wait(instances_.ended_instances("main", 1))->empty();
    }));
    EXPECT_THAT(
        wait(instances_.ended_instances("main", 1))->front().reason, HasSubstr("no such token: ***")
    );
    const auto all = wait(instances_.fleet_events({.fleet = "main"}));
    for (const FleetEvent& event : *all) {
        EXPECT_THAT(event.why, testing::Not(HasSubstr("hf_nobody-may-see")));
    }
}

TEST_F(KeptPoolsTest, APoolChangesItsSizeWhileItServes) {
    open();
    ASSERT_TRUE(has_ready(1));
    resize(3);
    ASSERT_TRUE(has_ready(3));
    resize(0);
    ASSERT_TRUE(has_ready(0));
    EXPECT_TRUE(support::wait_until([&] {
        return on_core([&] { return rack_->machines.empty() && fleet_->workers().empty(); });
    }));
    EXPECT_EQ(on_core([&] { return rack_->orders.size(); }), 3U);
}

TEST_F(KeptPoolsTest, AfterARestartTheSameMachineServes) {
    open();
    ASSERT_TRUE(has_ready(1));
    const Instance before = rows().front();
    close();
    open();
    ASSERT_TRUE(has_ready(1));
    EXPECT_EQ(rows().front().id, before.id);
    EXPECT_EQ(rows().front().token, before.token);
    ASSERT_TRUE(is_worker(before.worker()));
    EXPECT_EQ(on_core([&] { return rack_->orders.size(); }), 1U);
    EXPECT_EQ(comfy_->accepted_prompts().size(), 1U) << "it is warm";
}

TEST_F(KeptPoolsTest, AMachineThatVanishesIsReplaced) {
    open();
    ASSERT_TRUE(has_ready(1));
    const std::string before = rows().front().id;
    on_core([&] { rack_->machines.clear(); });
    ASSERT_TRUE(support::wait_until([&] {
        const auto all = rows();
        return all.size() == 1 && all.front().state == ready && all.front().id != before;
    }));
    EXPECT_THAT(events(), Contains("failed"));
    EXPECT_EQ(record().failed_starts, 0) << "it had served";
}

TEST_F(KeptPoolsTest, WhatRunsOnOneThatLeavesIsGivenBack) {
    open();
    ASSERT_TRUE(has_ready(1));
    const std::string worker = rows().front().worker();
    ASSERT_TRUE(is_worker(worker));
    auto slow = begin(assignment(picture_with("slow=600000")), worker);
    ASSERT_TRUE(support::wait_until([&] { return comfy_->queue_remaining() == 1; }));
    resize(0);
    const auto result = end(*slow);
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().details.contains("given_back"));
    EXPECT_TRUE(has_ready(0));
}

TEST_F(KeptPoolsTest, ThreeStartsThatFailPauseTheTemplate) {
    settings_.warm_up = R"({"1": {"class_type": "NoSuchNode", "inputs": {}}})";
    open();
    ASSERT_TRUE(support::wait_until([&] { return record().failed_starts == 1; }));
    // Waiting for the next is left out: the first two have failed.
    PoolRecord counted = record();
    counted.failed_starts = 2;
    counted.revision += 1;
    ASSERT_TRUE(wait(instances_.save_pool(counted, std::nullopt)));
    close();
    open();
    ASSERT_TRUE(support::wait_until([&] { return !record().paused.empty(); }));
    EXPECT_EQ(record().paused, settings_.mark());
    EXPECT_THAT(record().paused_why, HasSubstr("the warm-up failed"));
    EXPECT_THAT(events(), Contains("paused"));
    ASSERT_TRUE(has_ready(0));
    EXPECT_TRUE(on_core([&] { return rack_->machines.empty(); })) << "nothing is left behind";
    close();
    settings_.warm_up = kPicture;  // the template is another one
    open();
    EXPECT_TRUE(has_ready(1));
    EXPECT_TRUE(support::wait_until([&] { return record().failed_starts == 0; }));
}

TEST_F(KeptPoolsTest, AGpuWithLessMemoryThanWasPromisedIsNotTaken) {
    open();
    ASSERT_TRUE(has_ready(1));
    on_core([&] { rack_->promised = 1ULL << 50; });
    resize(2);
    EXPECT_TRUE(support::wait_until([&] { return record().failed_starts == 1; }));
    EXPECT_TRUE(support::wait_until([&] {
        const auto all = wait(instances_.ended_instances("main", 10));
        return !all->empty() && all->front().reason.find("promised") != std::string::npos;
    }));
}

// It tells the memory of the computer, which is more than any GPU has.
TEST_F(KeptPoolsTest, AComfyUiOnTheCpuIsNotTakenForTheGpuThatWasPromised) {
    double_options_.gpu = "cpu";
    double_options_.vram_total = 1LL << 40;
    open();
    ASSERT_TRUE(has_ready(1)) << "no GPU was promised";
    on_core([&] { rack_->promised = 24'000'000'000; });
    resize(2);
    EXPECT_TRUE(support::wait_until([&] { return record().failed_starts == 1; }));
    EXPECT_TRUE(support::wait_until([&] {
        const auto all = wait(instances_.ended_instances("main", 10));
        return !all->empty() && all->front().reason.find("on the CPU") != std::string::npos;
    }));
}

TEST_F(KeptPoolsTest, AnEmptyBalanceIsToldAndAsksForNothingMore) {
    open();
    ASSERT_TRUE(has_ready(1));
    on_core([&] { rack_->refusal = Code::balance_empty; });
    resize(2);
    ASSERT_TRUE(support::wait_until([&] {
        const auto told = events();
        return std::ranges::find(told, "provider_closed") != told.end();
    }));
    EXPECT_THAT(rows(), SizeIs(2));
}

TEST(AgentStatus, IsReadAndJudged) {
    const auto status = AgentStatus::read(R"({
        "instance": "a", "state": "ready", "disk_free_bytes": 60000000000,
        "gpus": [{"uuid": "GPU-1", "memory_total_bytes": 24000000000},
                 {"uuid": "GPU-2", "memory_total_bytes": 20000000000}]})");
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, "ready");
    EXPECT_EQ(status->gpu, "GPU-1");
    EXPECT_EQ(status->gpu_memory_bytes, 20'000'000'000U);
    using enum Examination::Verdict;
    EXPECT_EQ(judge(*status, 0, {}).verdict, good);
    EXPECT_EQ(judge(*status, 0, {}).gpu, "GPU-1");
    EXPECT_EQ(judge(*status, 0, {.gpu_memory_bytes = 21'000'000'000}).verdict, good);
    EXPECT_EQ(judge(*status, 0, {.gpu_memory_bytes = 24'000'000'000}).verdict, wrong);
    EXPECT_EQ(judge(*status, 0, {.disk_bytes = 100'000'000'000}).verdict, good);
    EXPECT_EQ(judge(*status, 0, {.disk_bytes = 200'000'000'000}).verdict, wrong);
    EXPECT_EQ(judge({}, 8'000'000'000, {.gpu_memory_bytes = 24'000'000'000}).verdict, wrong);
    EXPECT_EQ(judge({}, 0, {.gpu_memory_bytes = 24'000'000'000}).verdict, good) << "nobody told";
    EXPECT_FALSE(AgentStatus::read("<html>"));
    EXPECT_TRUE(AgentStatus::read(R"({"gpus": [1, null], "disk_free_bytes": -1})"));
}

}  // namespace
}  // namespace comfyd::fleet
