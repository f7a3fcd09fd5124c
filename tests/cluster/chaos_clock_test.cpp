// Nodes whose wall clocks are an hour wrong, each in its own direction.
#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

class ClusterClocks : public ClusterChaos {
protected:
    ClusterClocks() : ClusterChaos(with_wrong_clocks()) {}
    static ClusterOptions with_wrong_clocks() {
        ClusterOptions made = options();
        made.clock_shifts = {std::chrono::hours(1), std::chrono::hours(-1)};
        return made;
    }
};

// Each leads for a while.
TEST_F(ClusterClocks, AnHourOffLoseNothing) {
    expect_all_done(submit_while([&] { cluster_.node(leader()).restart(); }, 6));
}

}  // namespace
}  // namespace comfyd::support
