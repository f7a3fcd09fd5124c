// Nodes whose wall clocks are an hour wrong, each in its own direction.
#include <algorithm>

#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

class ClusterClocks : public ClusterChaos {
protected:
    ClusterClocks() : ClusterChaos(with_wrong_clocks()) {}
    static ClusterOptions with_wrong_clocks() {
        ClusterOptions made = options();
        made.environments = {shifted_by(std::chrono::hours(1)), shifted_by(std::chrono::hours(-1))};
        return made;
    }
    static std::map<std::string, std::string> shifted_by(std::chrono::seconds time) {
        return {
            {"LD_PRELOAD", COMFYD_SHIFTED_CLOCK},
            {"COMFYD_TEST_CLOCK_SHIFT_S", std::to_string(time.count())},
        };
    }
};

// Whichever accepts it, a job is of now.
TEST_F(ClusterClocks, GoByTheDatabases) {
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
        Comfyd& node = cluster_.node(i);
        ASSERT_TRUE(wait_until([&] {
            const json::value told = node.http().get("/admin/v1/cluster").json();
            const json::array& nodes = told.at("nodes").as_array();
            return nodes.size() == cluster_.size() &&
                   std::ranges::none_of(nodes, [](const json::value& one) {
                       return one.at("clock_ahead_ms").is_null();
                   });
        }));
        const std::string id = node.submit(text_to_image("now " + std::to_string(i)));
        const json::value job = node.wait_finished(id);
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << node.log();
        const std::string made(job.at("created_at").as_string());
        const std::string is_now = run_sql(
            cluster_.database(),
            "SELECT abs(extract(epoch FROM clock_timestamp() - '" + made + "'::timestamptz)) < 600"
        );
        EXPECT_EQ(is_now, "t") << made;
    }
}

// Each leads for a while.
TEST_F(ClusterClocks, AnHourOffLoseNothing) {
    expect_all_done(submit_while([&] { cluster_.node(leader()).restart(); }, 6));
}

}  // namespace
}  // namespace comfyd::support
