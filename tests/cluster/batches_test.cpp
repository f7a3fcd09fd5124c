// Batches on several nodes: made, paused and read on any of them, and gone on with by another when
// the one that looked after them has died.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

std::string text_at(const Reply& reply, std::string_view pointer) {
    const json::value value = reply.json_at(pointer);
    return value.is_string() ? std::string(value.get_string()) : "";
}

std::int64_t count_at(const Reply& reply, const std::string& name) {
    const json::value value = reply.json_at("/request_counts/" + name);
    return value.is_int64() ? value.get_int64() : -1;
}

TEST(ClusterBatches, AnotherNodeGoesOnWithThem) {
    ClusterOptions options;
    options.worker.delay = Millis(20);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Comfyd& first = cluster.node(*leader);
    Comfyd& other = cluster.node(1 - *leader);
    constexpr int kItems = 300;
    json::array items;
    for (int i = 0; i < kItems; ++i) {
        items.emplace_back(json::object{{"prompt", "item " + std::to_string(i)}});
    }
    const Reply made = other.http().post_json(
        "/v2/batches",
        {{"workflow", text_to_image("nothing")}, {"items", std::move(items)}, {"max_attempts", 9}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string path = "/v2/batches/" + text_at(made, "/id");
    ASSERT_TRUE(wait_until([&] { return count_at(first.http().get(path), "completed") > 0; }))
        << cluster.logs();
    ASSERT_EQ(other.http().post(path + "/pause", "").status, 200);
    ASSERT_TRUE(wait_until([&] { return count_at(first.http().get(path), "running") == 0; }))
        << cluster.logs();
    EXPECT_EQ(text_at(first.http().get(path), "/status"), "paused");
    EXPECT_GT(count_at(first.http().get(path), "waiting"), 0);
    ASSERT_EQ(other.http().post(path + "/resume", "").status, 200);
    first.kill();
    Reply last;
    ASSERT_TRUE(wait_until(
        [&] {
            last = other.http().get(path);
            return text_at(last, "/status") == "completed";
        },
        std::chrono::seconds(240)
    )) << last.body
       << cluster.logs();
    EXPECT_EQ(count_at(last, "completed"), kItems) << last.body;
    std::set<std::string> jobs;
    std::istringstream manifest(other.http().get(path + "/manifest").body);
    for (std::string line; std::getline(manifest, line);) {
        jobs.insert(std::string(json::parse(line)->at("job_id").as_string()));
    }
    EXPECT_EQ(jobs.size(), static_cast<std::size_t>(kItems));
    EXPECT_EQ(run_sql(cluster.database(), "SELECT count(*) FROM jobs"), std::to_string(kItems));
    EXPECT_EQ(other.http().get(path + "/zip").status, 200);
}

}  // namespace
}  // namespace comfyd::support
