// Connections that are cut or swallow what is sent, between nodes and the database, Redis and
// workers.
#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

using Fault = FaultProxy::Fault;

class ClusterNetwork : public ClusterChaos {
protected:
    ClusterNetwork() : ClusterChaos(with_proxies()) {}
};

TEST_F(ClusterNetwork, CuttingAnyNodeFromTheDatabase) {
    expect_all_done(submit_while([&] { cluster_.to_postgres(any_node()).inflict(Fault::cut); }, 15)
    );
}

TEST_F(ClusterNetwork, CuttingWhoLeadsOffTheDatabase) {
    expect_all_done(submit_while(
        [&] {
            FaultProxy& network = cluster_.to_postgres(leader());
            network.inflict_on_all(Fault::cut);
            std::this_thread::sleep_for(std::chrono::seconds(8));
            network.heal();
        },
        2
    ));
}

// Nobody hears that the connections are gone.
TEST_F(ClusterNetwork, HalfOpenBetweenWhoLeadsAndTheDatabase) {
    expect_all_done(submit_while(
        [&] {
            FaultProxy& network = cluster_.to_postgres(leader());
            network.inflict_on_all(Fault::swallow_both);
            std::this_thread::sleep_for(std::chrono::seconds(12));
            network.heal();
        },
        1
    ));
}

TEST_F(ClusterNetwork, HalfOpenBetweenAnyNodeAndTheDatabase) {
    expect_all_done(submit_while(
        [&] {
            constexpr Fault kinds[] = {Fault::swallow_requests, Fault::swallow_answers};
            cluster_.to_postgres(any_node()).inflict(kinds[random_() % 2]);
        },
        3
    ));
}

TEST_F(ClusterNetwork, CuttingAnyNodeFromRedis) {
    expect_all_done(submit_while([&] { cluster_.to_redis(any_node()).inflict(Fault::cut); }, 15));
}

TEST_F(ClusterNetwork, HalfOpenBetweenNodesAndRedis) {
    expect_all_done(submit_while(
        [&] {
            FaultProxy& network = cluster_.to_redis(any_node());
            network.inflict_on_all(Fault::swallow_both);
            std::this_thread::sleep_for(std::chrono::seconds(3));
            network.heal();
        },
        4
    ));
}

TEST_F(ClusterNetwork, WhoLeadsIsCutOffFromDatabaseAndRedis) {
    expect_all_done(submit_while(
        [&] {
            const std::size_t node = leader();
            cluster_.to_postgres(node).inflict_on_all(Fault::swallow_both);
            cluster_.to_redis(node).inflict_on_all(Fault::swallow_both);
            std::this_thread::sleep_for(std::chrono::seconds(10));
            cluster_.to_postgres(node).heal();
            cluster_.to_redis(node).heal();
        },
        1
    ));
}

TEST_F(ClusterNetwork, CuttingAnyWorker) {
    expect_all_done(submit_while([&] { cluster_.to_worker(random_() % 4).inflict(Fault::cut); }, 15)
    );
}

// They have the prompt, and nobody was told so.
TEST_F(ClusterNetwork, LosingAnswersOfWorkers) {
    int lost = 0;
    expect_all_done(submit_while(
        [&] {
            FaultProxy& network = cluster_.to_worker(random_() % 4);
            network.inflict_after(FaultProxy::Way::to_server, "class_type", Fault::lose_answer);
            lost += wait_until([&] { return network.has_struck(); }, std::chrono::seconds(3));
        },
        12
    ));
    EXPECT_GT(lost, 6);
}

}  // namespace
}  // namespace comfyd::support
