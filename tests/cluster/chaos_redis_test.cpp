// Redis that loses what it has, its clients, or itself. Nothing is kept there.
#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

TEST_F(ClusterChaos, KillingRedis) {
    expect_all_done(submit_while(
        [&] {
            cluster_.redis().kill();
            pause();
            cluster_.redis().start();
        },
        5
    ));
}

TEST_F(ClusterChaos, FlushingRedis) {
    expect_all_done(submit_while(
        [&] {
            cluster_.redis().command({"FLUSHALL"});
            cluster_.redis().command({"SCRIPT", "FLUSH"});
            cluster_.redis().command({"CLIENT", "KILL", "TYPE", "normal"});
            cluster_.redis().command({"CLIENT", "KILL", "TYPE", "pubsub"});
        },
        10
    ));
}

class ClusterBeforeRedis : public ClusterChaos {
protected:
    ClusterBeforeRedis() : ClusterChaos(before_redis()) {}
    static ClusterOptions before_redis() {
        ClusterOptions made = options();
        made.redis_comes_later = true;
        return made;
    }
};

TEST_F(ClusterBeforeRedis, EverythingIsThereAndTheBusComesWithIt) {
    expect_all_done(submit_while(
        [&] {
            pause();
            cluster_.redis().start();
        },
        1
    ));
    EXPECT_TRUE(wait_until([&] {
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            const Reply shown = cluster_.node(i).http().get("/admin/v1/cluster");
            if (shown.status != 200 || !shown.json_at("/bus/up").as_bool()) {
                return false;
            }
        }
        return true;
    })) << cluster_.logs();
}

}  // namespace
}  // namespace comfyd::support
