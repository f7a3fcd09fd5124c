// What is never done to a machine that works, in thousands of pools of chance.
#include <map>
#include <random>

#include "fleet/instances/plan_fixture.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;

class PlanProperties : public PlanTest {
protected:
    int pick(int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(chance_);
    }
    // Machines of a scaled pool in all states, some of which its provider does not show.
    void make_view() {
        view_.instances.clear();
        view_.aside.clear();
        view_.listings.clear();
        view_.leaving.clear();
        view_.parking = {"cloud"};
        PoolGoal& pool = view_.pools[0];
        pool.size = pick(0, 12);
        pool.parked = pick(0, 2);
        pool.is_scaled = true;
        pool.why = "nothing waits";
        const int machines = pick(0, 12);
        for (int i = 0; i < machines; ++i) {
            const auto state = static_cast<InstanceState>(pick(0, 7));
            Instance& row = add(state, state == requested ? "" : "m" + std::to_string(i));
            row.id = "0000000000" + std::to_string(10 + i);
            row.since[state] = view_.now;
            row.url = "http://gpu";
            Aside& aside = view_.aside[row.id];
            aside.is_employed = state == ready;
            aside.jobs = state == ready ? static_cast<std::size_t>(pick(0, 2)) : 0;
            aside.best_effort = static_cast<std::size_t>(pick(0, static_cast<int>(aside.jobs)));
            aside.wanted = static_cast<std::size_t>(pick(0, 5));
            if (!row.machine.empty() && pick(0, 9) > 0) {
                show(
                    row,
                    state == parked ? Machine::State::stopped : Machine::State::running,
                    row.machine
                );
            }
        }
        list();
    }
    const Instance& row(const std::string& id) const {
        return *std::ranges::find(view_.instances, id, &Instance::id);
    }
    bool works(const std::string& id) const {
        const Aside& aside = view_.aside.at(id);
        return aside.jobs > aside.best_effort;
    }

    std::mt19937_64 chance_{17};
};

TEST_F(PlanProperties, WhoWorksIsNeverGivenUpAndOfTheOthersWhoseModelsFewestWant) {
    constexpr int kViews = 5'000;
    std::size_t given_up = 0;
    for (int i = 0; i < kViews; ++i) {
        make_view();
        int wanted = 0;
        for (const Instance& one : view_.instances) {
            wanted += is_wanted(one.state) ? 1 : 0;
        }
        std::map<std::string, Kind> ends;
        int requests = 0;
        for (const Step& step : plan(view_)) {
            requests += step.kind == Kind::request || step.kind == Kind::wake ? 1 : 0;
            const bool is_end = step.kind == Kind::drain || step.kind == Kind::leave ||
                                step.kind == Kind::park || step.kind == Kind::end;
            if (is_end && is_wanted(row(step.instance).state)) {
                EXPECT_FALSE(works(step.instance)) << i;
                ends[step.instance] = step.kind;
            }
        }
        given_up += ends.size();
        const int size = view_.pools[0].size;
        EXPECT_LE(std::ssize(ends), std::max(0, wanted - size)) << i;
        EXPECT_LE(requests, std::max(0, size - wanted)) << i;
        for (const auto& [gone, how] : ends) {
            for (const Instance& kept : view_.instances) {
                if (kept.state == row(gone).state && !ends.contains(kept.id) && !works(kept.id) &&
                    view_.aside[kept.id].jobs == view_.aside[gone].jobs) {
                    EXPECT_LE(view_.aside[gone].wanted, view_.aside[kept.id].wanted) << i;
                }
            }
        }
    }
    EXPECT_GT(given_up, 1'000U);
}

}  // namespace
}  // namespace comfyd::fleet
