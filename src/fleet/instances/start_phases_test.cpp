#include "fleet/instances/start_phases.hpp"

#include <gmock/gmock.h>

namespace comfyd::fleet {
namespace {

using enum InstanceState;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Pair;

Instance came_up() {
    Instance row;
    const Time at = from_unix_ms(1'700'000'000'000);
    row.since = {
        {requested, at},
        {creating, at + seconds(2)},
        {starting, at + seconds(12)},
        {warming, at + seconds(42)},
        {ready, at + seconds(45)},
    };
    return row;
}

TEST(StartPhases, AreFromOneStateToTheNextThatThereWas) {
    EXPECT_THAT(
        start_phases(came_up()),
        ElementsAre(Pair(requested, 2), Pair(creating, 10), Pair(starting, 30), Pair(warming, 3))
    );
}

TEST(StartPhases, OfOneThatWasStoppedAreThoseSinceItWasWoken) {
    Instance row = came_up();
    const Time at = *row.when(ready) + seconds(1'000);
    row.since[parked] = at;
    row.since[starting] = at + seconds(100);
    row.since[warming] = at + seconds(107);
    row.since[ready] = at + seconds(108);
    EXPECT_THAT(start_phases(row), ElementsAre(Pair(starting, 7), Pair(warming, 1)));
}

TEST(StartPhases, AreCountedInBuckets) {
    PhaseTimes times;
    times.note(0.5);
    times.note(1);
    times.note(1.1);
    PhaseTimes others;
    others.note(1'000);
    times.add(others);
    EXPECT_EQ(times.counts.front(), 2U);
    EXPECT_EQ(times.counts[1], 1U);
    EXPECT_EQ(times.counts.back(), 1U);
    EXPECT_DOUBLE_EQ(times.sum_s, 1'002.6);
}

}  // namespace
}  // namespace comfyd::fleet
