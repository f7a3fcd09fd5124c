// Nodes and servers that are killed or stopped: nothing is lost and nothing runs twice.
#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

TEST_F(ClusterChaos, KillingAnyNode) {
    expect_all_done(submit_while([&] { cluster_.node(any_node()).restart(); }, 10));
}

class ClusterStops : public ClusterChaos {
protected:
    void stop_for(std::size_t node, std::chrono::seconds time) {
        Process& process = cluster_.node(node).process();
        process.kill(SIGSTOP);
        std::this_thread::sleep_for(time);
        process.kill(SIGCONT);
    }
};

TEST_F(ClusterStops, WhoLeads) {
    expect_all_done(submit_while([&] { stop_for(leader(), std::chrono::seconds(10)); }, 2));
}

TEST_F(ClusterStops, WhoLeadsForLong) {
    expect_all_done(submit_while([&] { stop_for(leader(), std::chrono::seconds(20)); }, 1));
}

TEST_F(ClusterStops, WhoAcceptsForLong) {
    expect_all_done(submit_while([&] { stop_for(follower(), std::chrono::seconds(20)); }, 1));
}

TEST_F(ClusterChaos, KillingTheDatabase) {
    expect_all_done(submit_while(
        [&] {
            cluster_.postgres().crash();
            pause();
            cluster_.postgres().start();
        },
        4
    ));
}

}  // namespace
}  // namespace comfyd::support
