// The keeper of the fleet's machines under virtual time: the real keeper and its plan over a cloud
// with faults, a store that fails or says so though it wrote, and processes that die in the middle
// of any step. Whatever happens, no instance has two machines, nothing of others is touched, and
// when all heals a pool has its size and nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include "base/log.hpp"
#include "fleet/instances/keeper.hpp"
#include "fleet/instances/memory_store.hpp"
#include "simulation/instances/cloud.hpp"
#include "simulation/seeds.hpp"

namespace comfyd::simulation {
namespace {

using fleet::InstanceState;

constexpr std::uint64_t kSchedules = COMFYD_SIMULATIONS / 200;

// Writes stay, whoever hears of them.
class LateStore final : public fleet::InstanceStore {
public:
    LateStore(fleet::MemoryInstances& stored, Cloud& cloud) : stored_(stored), cloud_(cloud) {}

    Task<Result<>> save_instance(
        fleet::Instance instance,
        std::optional<fleet::FleetEvent> event,
        std::optional<jobs::Term> under
    ) override {
        return late(stored_.save_instance(std::move(instance), std::move(event), std::move(under)));
    }
    Task<Result<std::vector<fleet::Instance>>> open_instances(std::string of) override {
        return late(stored_.open_instances(std::move(of)));
    }
    Task<Result<std::vector<fleet::Instance>>> ended_instances(std::string of, int limit) override {
        return late(stored_.ended_instances(std::move(of), limit));
    }
    Task<Result<>> save_pool(fleet::PoolRecord record, std::optional<fleet::FleetEvent> event)
        override {
        return late(stored_.save_pool(std::move(record), std::move(event)));
    }
    Task<Result<std::vector<fleet::PoolRecord>>> pool_records(std::string of) override {
        return late(stored_.pool_records(std::move(of)));
    }
    Task<Result<>> note_fleet_event(fleet::FleetEvent event) override {
        return late(stored_.note_fleet_event(std::move(event)));
    }
    Task<Result<std::vector<fleet::FleetEvent>>> fleet_events(fleet::FleetEventQuery query
    ) override {
        return late(stored_.fleet_events(std::move(query)));
    }

private:
    template <class T>
    Task<Result<T>> late(Task<Result<T>> work) {
        if (cloud_.fails(25)) {
            co_return fail(Code::storage_unavailable, "not now");
        }
        auto result = co_await std::move(work);
        if (cloud_.chance.one_in(2)) {
            const bool goes_on = co_await sleep_for(cloud_.chance.millis(1, 200));
            if (!goes_on) {
                co_return fail(Code::cancelled, "nobody waits for it any more");
            }
        }
        if (cloud_.fails(25)) {
            co_return fail(Code::storage_unavailable, "no answer");
        }
        co_return result;
    }

    fleet::MemoryInstances& stored_;
    Cloud& cloud_;
};

// Workers that are sometimes slow and sometimes not what was promised.
class ScriptedCrew final : public fleet::Crew {
public:
    explicit ScriptedCrew(Cloud& cloud) : cloud_(cloud) {}

    Task<fleet::Examination> examine(fleet::WorkerConfig, fleet::Promise) override {
        using Verdict = fleet::Examination::Verdict;
        const bool waited = co_await sleep_for(cloud_.chance.millis(1, 3'000));
        fleet::Examination found;
        found.verdict = !waited || cloud_.chance.one_in(3) ? Verdict::not_yet
                        : cloud_.fails(15)                 ? Verdict::wrong
                                                           : Verdict::good;
        co_return found;
    }
    Task<Result<>> warm_up(fleet::WorkerConfig, std::string, Millis) override {
        const bool waited = co_await sleep_for(cloud_.chance.millis(1, 20'000));
        if (!waited || cloud_.fails(6)) {
            const Code why = !waited           ? Code::cancelled
                             : cloud_.fails(2) ? Code::node_execution_error
                                               : Code::connection_failed;
            co_return fail(why, "it failed");
        }
        co_return Result<>();
    }
    Result<> employ(fleet::WorkerConfig worker) override {
        cloud_.note(!worker.url.empty(), "a worker without an address");
        cloud_.note(workers.insert(worker.id).second, "employed twice");
        return {};
    }
    Task<Result<>> dismiss(std::string worker, Millis patience) override {
        const int most = 1 + static_cast<int>(std::min<Millis::rep>(patience.count(), 120'000));
        const bool waited = co_await sleep_for(cloud_.chance.millis(0, most));
        if (!waited) {
            co_return fail(Code::cancelled, "stopped");
        }
        co_return workers.erase(worker) == 1 ? Result<>() : fail(Code::not_found, "no such worker");
    }
    void drain(const std::string&) override {}
    bool answers(const std::string& worker) const override { return !silent.contains(worker); }
    std::size_t jobs(const std::string& worker) const override { return worker.size() % 3; }

    std::set<std::string> workers;
    std::set<std::string> silent;  // whose ComfyUI hangs

private:
    Cloud& cloud_;
};

class Schedule {
public:
    explicit Schedule(std::uint64_t seed)
        : chance_(seed), time_(io_, Time(Millis(1'700'000'000'000))), cloud_(time_, chance_) {
        pool_.name = "gpu";
        pool_.size = chance_.below(5);
        pool_.warm_up = "{}";
        pool_.offers = {{"a", {}}, {"b", {}}};
        pool_.offers[0].usd_per_hour_max = 2;
        pool_.offers[1].usd_per_hour_max = 2;
        start();
    }
    ~Schedule() { die(); }

    // What is wrong; empty: nothing.
    std::string run() {
        for (int step = 10 + chance_.below(30); step > 0 && cloud_.wrong.empty(); --step) {
            act();
            pass(chance_.millis(1, chance_.one_in(4) ? 400'000 : 20'000));
        }
        heal();
        expect_size(pool_.size);
        pool_.size = 0;
        die();
        start();
        expect_size(0);
        return cloud_.wrong.empty() ? other_.wrong : cloud_.wrong;
    }

private:
    // Jobs wait for machines that no worker is, others at each look.
    std::optional<jobs::Load> load() {
        jobs::Load load;
        for (const char* region : {"", "eu", "us"}) {
            if (chance_.below(4) == 0) {
                jobs::Load::Waiting waiting;
                waiting.machine = {
                    .gpu = chance_.below(2) == 0 ? "H200" : "",
                    .region = region,
                    .memory_gb = 24.0 * static_cast<double>(chance_.below(3))
                };
                waiting.jobs = 1;
                load.waiting.push_back(waiting);
            }
        }
        return load;
    }

    void start() {
        crew_ = std::make_unique<ScriptedCrew>(cloud_);
        fleet::Keeper::Parts parts{
            .core = io_.get_executor(),
            .clock = time_,
            .store = store_,
            .crew = *crew_,
            .providers = {},
            .fleet = "main",
            .pools = {pool_},
            .load = [this] { return load(); },
            .chance = [this] { return chance_.below(1000) / 1000.0; },
            .new_id =
                [this] {
                    const std::string digits = std::to_string(++ids_);
                    return std::string(12 - digits.size(), '0') + digits;
                },
        };
        for (const char* name : {"a", "b"}) {
            parts.providers[name] =
                std::make_shared<CloudProvider>(std::string(name) == "a" ? cloud_ : other_, name);
        }
        keeper_ = std::make_unique<fleet::Keeper>(std::move(parts));
        bool is_back = false;
        boost::asio::co_spawn(io_, keeper_->recall(), [&is_back](std::exception_ptr) {
            is_back = true;
        });
        while (!is_back) {
            pass(Millis(10));
        }
        keeper_->start();
    }

    // In the middle of whatever it does.
    void die() {
        bool has_ended = false;
        boost::asio::co_spawn(io_, keeper_->stop(), [&has_ended](std::exception_ptr) {
            has_ended = true;
        });
        for (int i = 0; i < 1'000 && !has_ended; ++i) {
            pass(Millis(0));
        }
        cloud_.note(has_ended, "the keeper does not end");
        keeper_.reset();
    }

    void act() {
        switch (chance_.below(7)) {
            case 0:
            case 1:
                die();
                start();
                break;
            case 2:
                die();
                pool_.size = chance_.below(6);
                start();
                break;
            case 3:
                (chance_.one_in(2) ? cloud_ : other_).strike();
                break;
            case 4:
                resume();
                break;
            case 5:
                if (!crew_->workers.empty() && chance_.one_in(2)) {
                    crew_->silent.insert(*crew_->workers.begin());
                }
                break;
            default:
                break;
        }
    }

    // As an operator does it.
    void resume() {
        for (fleet::PoolRecord record : now(stored_.pool_records("main"))) {
            record.paused.clear();
            record.failed_starts = 0;
            record.revision += 1;
            static_cast<void>(now(stored_.save_pool(record, std::nullopt)));
        }
        keeper_->look();
    }

    void heal() {
        cloud_.is_healed = true;
        other_.is_healed = true;
        resume();
        pass(std::chrono::minutes(40));
        resume();
        pass(std::chrono::minutes(40));
    }

    void expect_size(int size) {
        pass(std::chrono::minutes(40));
        std::set<std::string> names;
        for (const fleet::Instance& row : now(stored_.open_instances("main"))) {
            cloud_.note(
                row.state == InstanceState::ready,
                "an instance stays " + std::string(to_string(row.state)) + ": " + row.reason
            );
            names.insert(row.name());
            cloud_.note(crew_->workers.contains(row.worker()), "a ready one is no worker");
            cloud_.note(!crew_->silent.contains(row.worker()), "one that hangs was kept");
        }
        cloud_.note(
            static_cast<int>(names.size()) == size,
            "the pool has " + std::to_string(names.size()) + " of " + std::to_string(size)
        );
        cloud_.note(crew_->workers.size() == names.size(), "a worker is left");
        std::vector<std::string> machines = cloud_.ours();
        std::ranges::copy(other_.ours(), std::back_inserter(machines));
        for (const std::string& machine : machines) {
            cloud_.note(names.contains(machine), "left behind: " + machine);
        }
        cloud_.note(machines.size() == names.size(), "there are more or fewer machines");
    }

    template <class T>
    T now(Task<Result<T>> task) {
        std::optional<Result<T>> done;
        boost::asio::co_spawn(io_, std::move(task), [&done](std::exception_ptr, Result<T> result) {
            done.emplace(std::move(result));
        });
        while (!done) {
            io_.poll();
        }
        if constexpr (!std::is_void_v<T>) {
            return std::move(**done);
        }
    }

    void pass(Millis span) {
        const Time then = time_.now() + span;
        io_.poll();
        while (time_.next() && *time_.next() <= then) {
            time_.advance_to(*time_.next());
            io_.poll();
            cloud_.check();
            other_.check();
        }
        time_.advance_to(then);
        io_.poll();
    }

    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<Executor> guard_{io_.get_executor()};
    Chance chance_;
    VirtualTime time_;
    Cloud cloud_;
    Cloud other_{time_, chance_};
    fleet::MemoryInstances stored_;
    LateStore store_{stored_, cloud_};
    fleet::PoolSettings pool_;
    std::unique_ptr<ScriptedCrew> crew_;
    std::unique_ptr<fleet::Keeper> keeper_;
    int ids_ = 0;
};

TEST(Instances, WhateverHappensNothingIsMadeTwiceOrLeftBehind) {
    tell_seed_when_it_ends_badly();
    log::configure(log::Level::error, log::Format::text);
    const std::uint64_t one = number_from("COMFYD_SIMULATE_SEED", 0);
    const std::uint64_t from = one != 0 ? one : number_from("COMFYD_SIMULATE_FROM", 1);
    const std::uint64_t count = one != 0 ? 1 : number_from("COMFYD_SIMULATE_COUNT", kSchedules);
    for (std::uint64_t seed = from; seed < from + count; ++seed) {
        seed_now = seed;
        const std::string wrong = Schedule(seed).run();
        ASSERT_EQ(wrong, "") << "COMFYD_SIMULATE_SEED=" << seed;
    }
}

}  // namespace
}  // namespace comfyd::simulation
