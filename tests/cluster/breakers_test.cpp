// What /metrics says of the servers that nodes share, while they are away and when they are back.
#include <gtest/gtest.h>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

class ClusterBreakers : public testing::Test {
protected:
    static ClusterOptions options() {
        ClusterOptions options;
        options.nodes = 1;
        options.workers = 1;
        return options;
    }
    bool shows(const std::string& dependency, int state) {
        const std::string line = "\ncomfyd_breaker_state{dependency=\"" + dependency + "\"} " +
                                 std::to_string(state) + "\n";
        return wait_until([&] {
            return cluster_.node(0).http().get("/metrics").body.find(line) != std::string::npos;
        });
    }

    Cluster cluster_{options()};
};

TEST_F(ClusterBreakers, FollowRedisAndTheDatabase) {
    ASSERT_TRUE(cluster_.wait_ready()) << cluster_.logs();
    for (const char* server : {"redis:events", "redis:limits", "ledger"}) {
        EXPECT_TRUE(shows(server, 0)) << server << cluster_.logs();
    }
    cluster_.redis().kill();
    EXPECT_TRUE(shows("redis:events", 1)) << cluster_.logs();
    EXPECT_TRUE(shows("redis:limits", 1)) << cluster_.logs();
    EXPECT_TRUE(shows("ledger", 0)) << "which has nothing to do with it";
    cluster_.redis().start();
    EXPECT_TRUE(shows("redis:events", 0)) << cluster_.logs();
    EXPECT_TRUE(shows("redis:limits", 0)) << cluster_.logs();

    cluster_.postgres().crash();
    EXPECT_TRUE(shows("ledger", 1)) << cluster_.logs();
    cluster_.postgres().start();
    EXPECT_TRUE(shows("ledger", 0)) << cluster_.logs();
    const std::string id = cluster_.node(0).submit(text_to_image("after"));
    EXPECT_EQ(Comfyd::status_of(cluster_.node(0).wait_finished(id)), "succeeded");
}

}  // namespace
}  // namespace comfyd::support
