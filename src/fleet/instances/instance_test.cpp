#include "fleet/instances/instance.hpp"

#include <gmock/gmock.h>

#include <set>

namespace comfyd::fleet {
namespace {

using enum InstanceState;

const Time kNow(Millis(1'700'000'000'000));

TEST(Instance, NamesAreOfOneFleetAlone) {
    const std::string id = new_instance_id();
    EXPECT_EQ(instance_of(machine_name("main", id), "main"), id);
    EXPECT_EQ(instance_of(machine_name("main-b", id), "main-b"), id);
    EXPECT_FALSE(instance_of(machine_name("main-b", id), "main"));
    EXPECT_FALSE(instance_of(machine_name("main", id), "main-b"));
    EXPECT_FALSE(instance_of(machine_name("main", id), "mai"));
    EXPECT_FALSE(instance_of("comfyd-main-", "main"));
    EXPECT_FALSE(instance_of("comfyd-main", "main"));
    EXPECT_FALSE(instance_of("", "main"));
    EXPECT_FALSE(instance_of("comfyd-main-" + id + "0", "main"));
    EXPECT_FALSE(instance_of("comfyd-main-0123456789A-", "main"));
    EXPECT_FALSE(instance_of("my-comfyd-main-" + id, "main"));
    EXPECT_NE(id, new_instance_id());
    EXPECT_LE(machine_name(std::string(24, 'a'), id).size(), 63U) << "what a label may have";
}

TEST(Instance, FleetsHaveShortPlainNames) {
    for (const char* good : {"a", "main", "eu-1", "012345678901234567890123"}) {
        EXPECT_TRUE(is_fleet_name(good)) << good;
    }
    for (const char* bad : {"", "-a", "a-", "Main", "a.b", "a b", "0123456789012345678901234"}) {
        EXPECT_FALSE(is_fleet_name(bad)) << bad;
    }
}

TEST(Instance, StatesHaveNames) {
    for (const InstanceState state : kInstanceStates) {
        EXPECT_EQ(parse_instance_state(to_string(state)), state);
    }
    EXPECT_FALSE(parse_instance_state("nothing"));
}

TEST(Instance, WhatHasEndedStaysSo) {
    for (const InstanceState from : {gone, failed}) {
        for (const InstanceState to : kInstanceStates) {
            EXPECT_FALSE(can_follow(from, to));
        }
    }
}

// Once a provider may have made a machine, the row ends by `removing`, or where there was none.
TEST(Instance, NoMachineIsForgotten) {
    for (const InstanceState from : {pulling, starting, warming, ready, draining, parked}) {
        EXPECT_FALSE(can_follow(from, gone)) << to_string(from);
        EXPECT_FALSE(can_follow(from, failed)) << to_string(from);
        EXPECT_FALSE(can_follow(from, requested)) << to_string(from);
        EXPECT_FALSE(can_follow(from, creating)) << to_string(from);
    }
}

TEST(Instance, EveryStateCanBeReachedAndLeft) {
    std::set<InstanceState> reached{requested};
    for (std::size_t before = 0; before != reached.size();) {
        before = reached.size();
        for (const InstanceState from : kInstanceStates) {
            for (const InstanceState to : kInstanceStates) {
                if (reached.contains(from) && can_follow(from, to)) {
                    reached.insert(to);
                }
            }
        }
    }
    EXPECT_EQ(reached.size(), kInstanceStates.size());
    for (const InstanceState from : kInstanceStates) {
        const bool has_way = std::ranges::any_of(kInstanceStates, [from](InstanceState to) {
            return can_follow(from, to);
        });
        EXPECT_EQ(has_way, is_open(from)) << to_string(from);
    }
}

TEST(Instance, AMoveIsCountedAndTimed) {
    Instance instance;
    instance.id = "a";
    instance.revision = 1;
    const auto next = moved(instance, creating, kNow, "because");
    ASSERT_TRUE(next);
    EXPECT_EQ(next->state, creating);
    EXPECT_EQ(next->revision, 2U);
    EXPECT_EQ(next->reason, "because");
    EXPECT_EQ(next->when(creating), kNow);
    EXPECT_FALSE(next->when(ready));
    EXPECT_EQ(moved(*next, ready, kNow, "").error().code, Code::conflict);
}

TEST(Instance, SurvivesJsonAndTellsNoToken) {
    Instance instance;
    instance.id = "0123456789ab";
    instance.fleet = "main";
    instance.pool = "gpu";
    instance.state = warming;
    instance.token = "secret";
    instance.since[creating] = kNow;
    const json::object about = instance.to_json();
    EXPECT_EQ(json::serialize(about).find("secret"), std::string::npos);
    const auto read = Instance::from_json(about);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->to_json(), about);
    EXPECT_FALSE(Instance::from_json({}));
    EXPECT_FALSE(Instance::from_json({{"id", "a"}, {"state", "nothing"}}));
}

}  // namespace
}  // namespace comfyd::fleet
