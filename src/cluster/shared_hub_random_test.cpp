#include <random>

#include "cluster/hub_test_support.hpp"

namespace comfyd::cluster {
namespace {

using namespace test;

TEST_F(SharedHubTest, NothingIsMissedThoughHalfOfTheMessagesAreLost) {
    constexpr int kNodes = 3;
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto dice = [&random](unsigned sides) { return random() % sides; };
        for (int number = 1; number <= kNodes; ++number) {
            node(number);
        }
        lead(1);
        world.exchange.decide([&](const NodeId&, const NodeId&) {
            const auto cast = dice(10);
            return cast < 5 ? Fate::is_lost : cast < 6 ? Fate::waits : Fate::arrives;
        });
        std::vector<jobs::Job> all;
        for (int count = 0; count < 3; ++count) {
            all.push_back(make_job());
        }
        struct Watch {
            std::size_t job;
            std::uint64_t since;
            std::unique_ptr<Listener> listener;
        };
        std::vector<Watch> watches;
        ledger.takes = Millis(dice(2) * 30);
        for (int step = 0; step < 60; ++step) {
            const std::size_t which = dice(3);
            jobs::Job& job = all[which];
            const int number = static_cast<int>(1 + dice(kNodes));
            switch (dice(9)) {
                case 0:
                    if (watches.size() < 6) {
                        const std::uint64_t since = dice(2) * dice(3);
                        watches.push_back(
                            {which,
                             since,
                             std::make_unique<Listener>(
                                 node(number), ledger, job.id, WatchOptions{.since = since}
                             )}
                        );
                    }
                    break;
                case 1:
                case 2:
                case 3:
                    change(job);
                    break;
                case 4:
                    show(job);
                    break;
                case 5:
                    world.pass(Millis(dice(1'500)));
                    break;
                case 6:
                    world.exchange.cut_off(node_id(number), dice(2) == 0);
                    break;
                case 7:
                    world.exchange.deliver_waiting();
                    break;
                case 8:
                    if (dice(4) == 0) {
                        lead(number);
                    } else {
                        world.settle();
                    }
                    break;
            }
        }
        world.pass(Millis(10'000));
        for (const Watch& watch : watches) {
            EXPECT_EQ(watch.listener->stored(), stored(all[watch.job], watch.since));
        }
        watches.clear();
        leader = nullptr;
        nodes.clear();
        if (HasFailure()) {
            return;
        }
    }
}

}  // namespace
}  // namespace comfyd::cluster
