// Nodes that are replaced one by one while jobs come.
#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

class ClusterUpgrade : public ClusterChaos {
protected:
    void replace_next() {
        Comfyd& node = cluster_.node(next_++ % cluster_.size());
        EXPECT_EQ(node.stop(), 0) << node.log();
        node.start();
    }

private:
    std::size_t next_ = 0;
};

TEST_F(ClusterUpgrade, OneAfterTheOther) {
    expect_all_done(submit_while([&] { replace_next(); }, 9));
}

// As a newer node does it that comes first: by a step that only adds.
TEST_F(ClusterUpgrade, OverTablesThatANewerOneHasChanged) {
    int replaced = 0;
    expect_all_done(submit_while(
        [&] {
            if (replaced++ == 0) {
                run_sql(
                    cluster_.database(),
                    // In the order in which those who lead lock them.
                    "BEGIN; ALTER TABLE leases ADD COLUMN from_the_future int8 NOT NULL DEFAULT 7; "
                    "ALTER TABLE jobs ADD COLUMN from_the_future text; "
                    "CREATE TABLE things_of_the_future (id int8); "
                    "UPDATE schema_version SET version = version + 1; COMMIT"
                );
            } else {
                replace_next();
            }
        },
        4
    ));
}

}  // namespace
}  // namespace comfyd::support
