// Nodes that count requests together, and go on counting when what they share is gone.
#include <gtest/gtest.h>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

class ClusterLimits : public testing::Test {
protected:
    // One request in twenty minutes.
    static ClusterOptions options() {
        ClusterOptions options;
        options.workers = 1;
        options.arguments = {
            "--set",
            "limits.tier_default=basic",
            "--set",
            "tiers.basic.requests_per_minute=0.05",
        };
        return options;
    }
    double metric(std::size_t node, const std::string& name) {
        const std::string text = cluster_.node(node).http().get("/metrics").body;
        const auto at = text.find("\n" + name + " ");
        return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
    }
    bool wait_shared(double wanted) {
        return wait_until([&] {
            return metric(0, "comfyd_limits_shared") == wanted &&
                   metric(1, "comfyd_limits_shared") == wanted;
        });
    }
    // Requests that were let through, of some to each node in turn.
    int accepted() {
        int count = 0;
        for (int i = 0; i < 8; ++i) {
            Http& http = cluster_.node(static_cast<std::size_t>(i % 2)).http();
            const Reply reply = http.post_json("/api/v2/jobs", {{"workflow", text_to_image("a")}});
            EXPECT_TRUE(reply.status == 201 || reply.status == 429) << reply.body;
            count += reply.status == 201 ? 1 : 0;
        }
        return count;
    }
    double alone() { return metric(0, "comfyd_limits_alone") + metric(1, "comfyd_limits_alone"); }

    Cluster cluster_{options()};
};

TEST_F(ClusterLimits, OneLimitForAllNodesAndAShareForEachWithoutRedis) {
    ASSERT_TRUE(cluster_.wait_ready()) << cluster_.logs();
    ASSERT_TRUE(wait_shared(1)) << cluster_.logs();
    const int together = accepted();
    // A machine under load may leave an answer of Redis out.
    EXPECT_LE(together, alone() == 0 ? 1 : 3);
    EXPECT_GE(together, 1);

    cluster_.redis().kill();
    ASSERT_TRUE(wait_shared(0)) << cluster_.logs();
    const int apart = accepted();
    EXPECT_LE(together + apart, 3) << "the limit, and one share of each node";
    EXPECT_GE(together + apart, 2);
    EXPECT_EQ(accepted(), 0) << "never unlimited";
    EXPECT_GE(alone(), 16);
}

}  // namespace
}  // namespace comfyd::support
