// A cluster whose database burnt down is brought back from a dump, in another PostgreSQL.
#include <gtest/gtest.h>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

constexpr int kHeard = 50;  // an epoch that the worker knows of and the dump does not

class Restore : public testing::Test {
protected:
    Restore() : cluster_(options()) {}

    static ClusterOptions options() {
        ClusterOptions options;
        options.workers = 1;
        options.worker.batch_pack = true;  // it has a fence
        return options;
    }
    Http worker() { return Http(cluster_.worker(0).url()); }
    // So that the transactions of this server are far ahead of those of a new one.
    void age() {
        run_sql(
            cluster_.database(),
            "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END "
            "$$"
        );
    }
    static std::string worker_member(Comfyd& node, const char* name) {
        const json::value told = node.http().get("/admin/v1/workers").json();
        return std::string(told.at("workers").at(0).at(name).as_string());
    }
    void stop_placing() {
        Comfyd& node = cluster_.node(0);
        worker_ = "/admin/v1/workers/" + worker_member(node, "id");
        ASSERT_EQ(node.http().post_json(worker_ + "/drain", {}).status, 200);
        ASSERT_TRUE(wait_until([&] { return worker_member(node, "status") == "draining"; }));
    }
    void lose_everything() {
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            cluster_.node(i).kill();
        }
        const json::object lead{{"domain", "main"}, {"epoch", kHeard}};
        ASSERT_EQ(worker().post_json("/comfyd/lead", lead).status, 200);
    }
    ComfydOptions over(const std::string& database) {
        ComfydOptions options = cluster_.node_options(0);
        for (std::string& word : options.arguments) {
            word = word == cluster_.database() ? database : word;
        }
        return options;
    }
    static int declare_restored(const std::string& database) {
        Process command({COMFYD_BINARY, "ledger", "restored", "--ledger", database});
        return command.wait().value_or(-1);
    }

    Cluster cluster_;
    std::string worker_;
    PostgresServer other_;
};

TEST_F(Restore, JobsThatWaitedInADumpAndNewOnesRunInAnotherServer) {
    age();
    ASSERT_TRUE(cluster_.wait_ready());
    const std::string ended = cluster_.node(0).submit(text_to_image("before"));
    ASSERT_EQ(Comfyd::status_of(cluster_.node(1).wait_finished(ended)), "succeeded");
    stop_placing();
    std::vector<std::string> waiting;
    for (std::size_t i = 0; i < 4; ++i) {
        waiting.push_back(cluster_.node(i % 2).submit(text_to_image("waiting " + std::to_string(i)))
        );
    }
    const std::string restored = other_.make_database();
    copy_database(cluster_.database(), restored);
    lose_everything();
    ASSERT_EQ(
        run_sql(
            restored,
            "SELECT count(*) FROM jobs WHERE outcome IS NULL AND "
            "arrival > pg_snapshot_xmax(pg_current_snapshot())"
        ),
        "4"
    ) << "the dump names transactions that the new server is far from";

    ASSERT_EQ(declare_restored(restored), 0);
    EXPECT_EQ(
        run_sql(
            restored,
            "SELECT count(*) FROM jobs WHERE outcome IS NULL AND "
            "arrival < pg_snapshot_xmin(pg_current_snapshot())"
        ),
        "4"
    );
    Comfyd first(over(restored));
    Comfyd second(over(restored));
    EXPECT_TRUE(wait_until([&] {
        return first.http().post_json(worker_ + "/resume", {}).status == 200;
    }));
    for (const std::string& id : waiting) {
        EXPECT_EQ(Comfyd::status_of(first.wait_finished(id)), "succeeded") << first.log();
    }
    const std::string after = second.submit(text_to_image("after"));
    EXPECT_EQ(Comfyd::status_of(first.wait_finished(after)), "succeeded") << first.log();
    const json::value before = second.job(ended);
    EXPECT_EQ(Comfyd::status_of(before), "succeeded");
    const std::string link(before.at("outputs").at(0).at("url").as_string());
    EXPECT_EQ(second.http().get(link.substr(second.url().size())).status, 200);
    for (const auto& [content, count] : cluster_.runs()) {
        EXPECT_EQ(count, 1U) << content;
    }
    // No lead was lost to a worker that had heard of a later one.
    EXPECT_EQ(
        run_sql(
            restored, "SELECT epoch BETWEEN 1000000 AND 1000010 FROM leases WHERE domain = 'main'"
        ),
        "t"
    );
}

TEST_F(Restore, IsRefusedWhileNodesUseTheDatabase) {
    EXPECT_EQ(declare_restored(cluster_.database()), 2);
    EXPECT_TRUE(cluster_.leader());
}

}  // namespace
}  // namespace comfyd::support
