// A view of one pool with one offer of each of two providers, for tests of plan().
#pragma once

#include <gmock/gmock.h>

#include "fleet/instances/plan.hpp"

namespace comfyd::fleet {

class PlanTest : public testing::Test {
protected:
    using Kind = Step::Kind;

    PlanTest() {
        view_.now = Time(Millis(1'700'000'000'000));
        view_.fleet = "main";
        PoolGoal pool;
        pool.name = "gpu";
        pool.size = 1;
        pool.offers = {{"cloud", {}}, {"other", {}}};
        view_.pools = {pool};
    }

    Instance& add(InstanceState state, std::string machine = "m1") {
        Instance instance;
        instance.id = "00000000000" + std::to_string(view_.instances.size());
        instance.fleet = "main";
        instance.pool = "gpu";
        instance.state = state;
        instance.provider = "cloud";
        instance.machine = std::move(machine);
        instance.since[InstanceState::requested] = instance.since[InstanceState::creating] =
            view_.now;
        view_.instances.push_back(std::move(instance));
        return view_.instances.back();
    }
    Listing& list() {
        Listing& listing = view_.listings["cloud"];
        listing.begun = 10;
        listing.at = view_.now;
        return listing;
    }
    Machine& show(const Instance& instance, Machine::State state, std::string id = "m1") {
        Machine machine;
        machine.id = std::move(id);
        machine.name = instance.name();
        machine.state = state;
        machine.made_at = view_.now;
        Listing& listing = list();
        listing.known.insert(instance.id);
        listing.machines.push_back(std::move(machine));
        return listing.machines.back();
    }

    // The one thing to be done.
    std::optional<Step> step() {
        const auto steps = plan(view_);
        EXPECT_THAT(steps, testing::SizeIs(testing::Le(1)));
        return steps.empty() ? std::nullopt : std::optional(steps.front());
    }
    std::optional<Kind> kind() {
        const auto one = step();
        return one ? std::optional(one->kind) : std::nullopt;
    }

    View view_;
};

}  // namespace comfyd::fleet
