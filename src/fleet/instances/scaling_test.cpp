#include "fleet/instances/scaling.hpp"

#include <gmock/gmock.h>

#include "base/requirement.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;
using autoscale::Why;
using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ScalingTest : public testing::Test {
protected:
    ScalingTest() {
        add_pool("default");
        pools_["default"].scaling = autoscale::Settings();
    }
    PoolSettings& add_pool(const std::string& name) {
        PoolSettings& pool = pools_[name];
        pool.name = name;
        pool.offers = {{"cloud", {"RTX 4090"}}};
        return pool;
    }
    Instance& add(const std::string& id, InstanceState state, double usd_per_hour = 1) {
        Instance& row = rows_[id];
        row.id = id;
        row.pool = "default";
        row.state = state;
        row.provider = "cloud";
        row.offer.gpu = "RTX 4090";
        row.offer.usd_per_hour = usd_per_hour;
        row.since[creating] = now_;
        load_.workers.push_back({row.worker(), "default", jobs::WorkerStatus::idle, 1, 0, 0, 0, 0});
        return row;
    }
    void wait(std::size_t jobs, const MachineWish& machine = {}, bool is_served = false) {
        scheduler::Backlog kind;
        kind.machine = machine;
        kind.wait_class = scheduler::WaitClass::high;
        kind.waiting = {jobs, static_cast<double>(jobs) * 10};
        kind.is_served = is_served;
        load_.backlog.push_back(kind);
        load_.arrived_s[machine.pool] += kind.waiting.seconds;
    }
    void look() { scaling_.look({now_, load_, pools_, records_, rows_, {}}); }
    // What was due is stored; the events.
    std::vector<FleetEvent> store() {
        std::vector<FleetEvent> events;
        for (Scaling::Due& due : scaling_.take_due(now_)) {
            records_[due.pool].name = due.pool;
            records_[due.pool].scaling =
                *json::parse_object(json::serialize(scaling_.to_store(due.pool)));
            std::ranges::move(due.events, std::back_inserter(events));
        }
        return events;
    }
    void restart() { scaling_ = Scaling(of_fleet_); }
    int machines() { return scaling_.decision("default")->machines; }

    Time now_ = *parse_rfc3339("2026-11-18T10:00:00Z");
    autoscale::Budget of_fleet_{};
    std::map<std::string, PoolSettings> pools_;
    std::map<std::string, PoolRecord> records_;
    std::map<std::string, Instance> rows_;
    jobs::Load load_;
    Scaling scaling_{of_fleet_};
};

TEST_F(ScalingTest, WorkIsThatOfThePoolThatItNames) {
    pools_["gold"] = add_pool("gold");
    pools_["gold"].scaling = autoscale::Settings();
    wait(1, {.pool = "gold"});
    look();
    EXPECT_EQ(machines(), 0);
    EXPECT_EQ(scaling_.decision("gold")->machines, 1);
    EXPECT_EQ(scaling_.decision("nobody"), nullptr);
    load_ = {};
    wait(1);
    look();
    EXPECT_EQ(machines(), 1) << "what names none is for the default one";
}

TEST_F(ScalingTest, WhatTheEngineDoesStartsNothing) {
    wait(5, {}, true);
    look();
    EXPECT_EQ(machines(), 0) << "it is served, and there is no machine";
}

TEST_F(ScalingTest, WhatTheMachinesCannotRunStartsNoMoreOfThem) {
    add("1", ready);
    wait(500, {}, false);
    look();
    EXPECT_EQ(machines(), 1);
}

TEST_F(ScalingTest, AnotherKindOfMachineIsStartedWhereAnOfferMayGiveIt) {
    add("1", ready);
    wait(5, {.gpu = "H200"});
    look();
    EXPECT_EQ(machines(), 1) << "no offer has one";
    pools_["default"].offers.push_back({"cloud", {"H200"}});
    look();
    EXPECT_EQ(machines(), 2);
    EXPECT_EQ(scaling_.decision("default")->why, Why::others);
}

TEST_F(ScalingTest, WhatWasSpentOutlivesARestartWithTheTimeInBetween) {
    pools_["default"].scaling->budget.usd_per_day = 10;
    add("1", ready);
    look();
    now_ += hours(1);
    look();
    EXPECT_NEAR(scaling_.money().at("default").budget->spent_usd, 1, 1e-6);
    EXPECT_NEAR(scaling_.money().at("default").idle_usd, 1, 1e-6);
    store();
    restart();
    now_ += hours(2);
    look();
    EXPECT_NEAR(scaling_.money().at("default").budget->spent_usd, 3, 1e-6);
    rows_.clear();
    now_ += hours(2);
    look();
    EXPECT_NEAR(scaling_.money().at("default").budget->spent_usd, 3, 1e-6) << "it is gone";
    EXPECT_THAT(scaling_.take_due(now_), SizeIs(1)) << "which is stored at once";
}

TEST_F(ScalingTest, BudgetsAreToldOfOnceAtEachLevelAndJobsWhy) {
    pools_["default"].scaling->budget.usd_per_day = 10;
    add("1", ready);
    wait(1, {}, true);
    std::vector<std::string> told;
    for (int minute = 0; minute < 12 * 60; ++minute) {
        now_ += std::chrono::minutes(1);
        look();
        for (const FleetEvent& event : store()) {
            if (event.what.starts_with("budget")) {
                told.push_back(event.what);
            }
        }
        if (minute == 9 * 60) {
            restart();  // and is not told again
        }
    }
    EXPECT_THAT(told, testing::ElementsAre("budget_low", "budget_spent"));
    EXPECT_EQ(scaling_.decision("default")->why, Why::budget);
    EXPECT_TRUE(scaling_.decision("default")->drains);
    EXPECT_THAT(scaling_.hindrances().at("default"), HasSubstr("2026-11-19T00:00:00"));
    now_ += hours(4);
    look();
    EXPECT_THAT(scaling_.hindrances(), IsEmpty()) << "the next day";
}

// The tightest may be now the one and now the other.
TEST_F(ScalingTest, EachLimitIsToldOfByItselfAndThoseOfTheFleetOnce) {
    of_fleet_.usd_per_month = 100;
    restart();
    add_pool("other").scaling = autoscale::Settings();
    pools_["default"].scaling->budget.usd_per_hour = 10;
    add("1", ready, 9.5);
    std::map<std::string, int> told;
    for (int minute = 0; minute < 12 * 60; ++minute) {
        now_ += std::chrono::minutes(1);
        look();
        for (const FleetEvent& event : store()) {
            told[event.what + ": " + event.why.substr(0, event.why.find(" has"))] +=
                event.what.starts_with("budget") ? 1 : 0;
        }
    }
    EXPECT_EQ(told["budget_low: the fleet"], 1);
    EXPECT_EQ(told["budget_spent: the fleet"], 1);
    EXPECT_GE(told["budget_low: the pool"], 11) << "each hour";
}

TEST_F(ScalingTest, WhoMayCostNoMoreAnHourHasNotSpentItAll) {
    pools_["default"].scaling->budget.usd_per_hour = 1.5;
    add("1", ready, 1);
    load_.workers[0].jobs = 1;
    wait(500, {}, true);
    look();
    EXPECT_EQ(scaling_.decision("default")->why, Why::budget);
    EXPECT_THAT(scaling_.hindrances().at("default"), HasSubstr("more in an hour"));
    EXPECT_THAT(scaling_.hindrances().at("default"), testing::Not(HasSubstr("1.5")));
}

TEST_F(ScalingTest, TheFleetsBudgetCountsAllPools) {
    of_fleet_.usd_per_day = 4;
    restart();
    add_pool("fixed").size = 2;
    add("1", ready, 2).pool = "fixed";
    load_.workers.clear();
    PoolRecord elsewhere;
    elsewhere.name = "far";
    autoscale::Memory memory;
    memory.spent.add(now_ - hours(1), now_, 1);
    elsewhere.scaling = {{"memory", memory.to_json()}};
    records_["far"] = elsewhere;
    wait(1);
    look();
    EXPECT_EQ(machines(), 1);
    now_ += hours(2);
    look();
    EXPECT_EQ(machines(), 0);
    EXPECT_THAT(scaling_.decision("default")->sentence, HasSubstr("the fleet"));
}

TEST_F(ScalingTest, StartsAreLearnedByOffer) {
    Instance& row = add("1", ready);
    row.since[ready] = now_ + seconds(20);
    look();
    scaling_.note_start(pools_["default"], row);
    rows_.clear();
    load_ = {};
    wait(1);
    look();
    EXPECT_NEAR(scaling_.decision("default")->numbers.start_s, 20, 0.1);
    store();
    now_ += seconds(61);
    look();
    store();
    restart();
    look();
    EXPECT_NEAR(scaling_.decision("default")->numbers.start_s, 20, 0.1) << "also after a restart";
    const json::object phases = scaling_.start_phases().at("default");
    EXPECT_EQ(phases, json::object({{"creating", {{"p50", 20.0}, {"p90", 20.0}}}}));
}

// A start that is none must not make those of others look longer.
TEST_F(ScalingTest, AMachineThatWasStoppedIsNoNewStart) {
    Instance& row = add("1", ready);
    row.since[ready] = now_ + seconds(20);
    look();
    scaling_.note_start(pools_["default"], row);
    row.since[parked] = now_ + hours(1);
    row.since[starting] = now_ + hours(30);
    row.since[ready] = now_ + hours(30) + seconds(4);
    for (int i = 0; i < 5; ++i) {
        scaling_.note_start(pools_["default"], row);
    }
    now_ += hours(31);
    look();
    EXPECT_NEAR(scaling_.decision("default")->numbers.start_p90_s, 20, 0.1);
    row.state = starting;
    row.since[starting] = now_;
    row.since.erase(ready);
    look();
    EXPECT_EQ(scaling_.decision("default")->numbers.coming, 1);
}

TEST_F(ScalingTest, StoppingPaysWhereTheyStartSooner) {
    EXPECT_TRUE(scaling_.parking_pays("default")) << "nobody knows";
    Instance& row = add("1", ready);
    look();
    const auto start = [&](bool is_woken, int seconds_each) {
        row.since[is_woken ? starting : creating] = now_;
        row.since[ready] = now_ + seconds(seconds_each);
        if (is_woken) {
            row.since[parked] = now_;
        }
        for (int i = 0; i < 3; ++i) {
            scaling_.note_start(pools_["default"], row);
        }
    };
    start(false, 60);
    EXPECT_TRUE(scaling_.parking_pays("default"));
    start(true, 90);
    EXPECT_FALSE(scaling_.parking_pays("default"));
    for (int i = 0; i < 4; ++i) {
        start(true, 10);
    }
    EXPECT_TRUE(scaling_.parking_pays("default"));
}

TEST_F(ScalingTest, AnOfferWhoseGpusAreFasterIsCheaperThough) {
    pools_["default"].offers = {{"cloud", {"L40S"}}, {"cloud", {"H200"}}};
    pools_["default"].offers[0].usd_per_hour_max = 1;
    pools_["default"].offers[1].usd_per_hour_max = 2;
    pools_["default"].scaling->max = 1;
    wait(1'000);
    look();
    EXPECT_THAT(scaling_.decision("default")->offers, testing::ElementsAre(0, 1));
    load_.gpu_speeds = {{"NVIDIA L40S", 1}};
    look();
    EXPECT_THAT(scaling_.decision("default")->offers, testing::ElementsAre(0, 1))
        << "nothing is known of the other";
    load_.gpu_speeds["NVIDIA H200"] = 4;
    look();
    EXPECT_THAT(scaling_.decision("default")->offers, testing::ElementsAre(1, 0));
}

TEST_F(ScalingTest, DecisionsAreToldOnceWithTheirNumbers) {
    wait(1);
    look();
    const auto events = store();
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_EQ(events[0].what, "scaled");
    EXPECT_EQ(events[0].details.at("because"), "zero");
    EXPECT_EQ(events[0].details.at("numbers").at("waiting"), 1);
    const FleetEvent stored = FleetEvent::from_json(events[0].to_json());
    EXPECT_EQ(stored.details.at("machines"), 1);
    now_ += seconds(1);
    look();
    EXPECT_THAT(store(), IsEmpty());
    records_["default"].size = 3;  // an operator decides
    now_ += seconds(1);
    load_.backlog.front().waiting = {500, 5'000};
    look();
    EXPECT_THAT(store(), IsEmpty());
}

TEST_F(ScalingTest, OddRecordsAreAsNone) {
    for (const char* odd :
         {R"({"memory": 1, "prices": [], "counted_until": "x", "warned": 5})",
          R"({"memory": {"spent": {"day": {"began": 1, "usd": "much"}}}, "prices": {"a": "b"}})"}) {
        records_["default"].scaling = *json::parse_object(odd);
        restart();
        look();
        EXPECT_EQ(machines(), 0);
    }
}

}  // namespace
}  // namespace comfyd::fleet
