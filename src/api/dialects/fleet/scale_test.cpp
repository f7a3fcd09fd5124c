#include "api/dialects/fleet/scale.hpp"

#include <gmock/gmock.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using jobs::Load;
using jobs::WorkerStatus;

Load::Use use(
    std::string worker, WorkerStatus status, std::size_t jobs = 0, std::size_t wanted = 0
) {
    return {std::move(worker), "gpu", status, 2, jobs, 10.0 * static_cast<double>(jobs), wanted};
}

Load::Waiting waiting(MachineWish machine, std::size_t jobs, double seconds) {
    const bool is_served = machine.gpu.empty();
    return {std::move(machine), jobs, seconds, is_served};
}

std::int64_t machines(const Load& load, const ScaleQuestion& question) {
    return encode_scale(load, question).at("machines").as_int64();
}

TEST(Scale, AsManyMachinesAsTheWorkWants) {
    ScaleQuestion question{.pool = "gpu"};
    EXPECT_EQ(machines({}, question), 0);
    Load load;
    load.workers = {use("a", WorkerStatus::running, 2), use("b", WorkerStatus::idle)};
    EXPECT_EQ(machines(load, question), 1) << "one is idle";
    load.waiting = {waiting({.pool = "gpu"}, 1, 0)};
    EXPECT_EQ(machines(load, question), 2) << "what waits wants one, however short it is";
    load.waiting = {waiting({.pool = "gpu"}, 100, 59)};
    EXPECT_EQ(machines(load, question), 2);
    load.waiting = {waiting({.pool = "gpu"}, 100, 601)};
    EXPECT_EQ(machines(load, question), 7) << "2 jobs run, 11 minutes wait, 2 at a time";
    load.waiting = {waiting({.pool = "gpu"}, 3, 10'000)};
    EXPECT_EQ(machines(load, question), 3) << "no more than there are jobs";
    question.within_s = 10'000;
    EXPECT_EQ(machines(load, question), 2);
    load = {};
    load.waiting = {waiting({.pool = "gpu"}, 8, 8'000)};
    question = {.pool = "gpu", .slots = 4};
    EXPECT_EQ(machines(load, question), 2) << "slots as configured, where there is none";
}

TEST(Scale, JobsThatNameNoPoolAreOfOneAlone) {
    Load load;
    load.waiting = {
        waiting({}, 5, 1), waiting({.pool = "gold"}, 7, 1), waiting({.gpu = "H200"}, 2, 1)
    };
    load.workers = {use("a", WorkerStatus::idle)};
    const json::object rest = encode_scale(load, {.pool = "gpu", .has_rest = true});
    EXPECT_EQ(rest.at("waiting"), 7);
    ASSERT_EQ(rest.at("unserved").as_array().size(), 1U);
    EXPECT_EQ(rest.at("unserved").at(0).at("gpu_type"), "H200");
    EXPECT_EQ(rest.at("unserved").at(0).at("waiting"), 2);
    const json::object gold = encode_scale(load, {.pool = "gold"});
    EXPECT_EQ(gold.at("waiting"), 7);
    EXPECT_TRUE(gold.at("workers").as_array().empty());
}

TEST(Scale, WorkersInTheOrderInWhichTheyAreBestGivenUp) {
    Load load;
    load.workers = {
        use("busy", WorkerStatus::running, 1, 9),
        use("very busy", WorkerStatus::running, 2),
        use("wanted", WorkerStatus::idle, 0, 12'345),
        use("idle", WorkerStatus::idle),
        use("starting", WorkerStatus::starting),
        use("draining", WorkerStatus::draining, 1),
        use("down", WorkerStatus::down),
    };
    std::vector<std::string> order;
    std::int64_t least = -1;
    const json::object scale = encode_scale(load, {.pool = "gpu"});
    for (const json::value& worker : scale.at("workers").as_array()) {
        order.emplace_back(worker.at("worker").as_string());
        EXPECT_GE(worker.at("deletion_cost").as_int64(), least);
        least = worker.at("deletion_cost").as_int64();
        EXPECT_LE(least, 2'147'483'647);
    }
    EXPECT_THAT(
        order,
        testing::ElementsAre("down", "starting", "idle", "wanted", "draining", "busy", "very busy")
    );
}

class ScaleRoute : public testing::Test {
protected:
    static test::Arrangement arrangement() {
        test::Arrangement setup;
        setup.options.pools = {"default", "gold"};
        return setup;
    }
    ScaleRoute() : api(arrangement()) {}

    test::TestApi api;
};

TEST_F(ScaleRoute, AnswersForPoolsThatThereAre) {
    const auto answer = api.get("/v2/pools/default/scale");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(test::parse(answer.body).at("within_seconds"), 60.0);
    EXPECT_EQ(api.get("/v2/pools/gold/scale?within=30").status, 200);
    EXPECT_EQ(api.get("/v2/pools/silver/scale").status, 404);
    for (const char* odd : {"0", "-1", "x", "1e9", "60s", "nan", "inf"}) {
        EXPECT_EQ(api.get("/v2/pools/gold/scale?within=" + std::string(odd)).status, 400) << odd;
    }
}

}  // namespace
}  // namespace comfyd::api
