#include "cluster/roll_call.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cluster/test_support.hpp"

namespace comfyd::cluster {
namespace {

using test::World;

// Of a database whose clock is off, and that takes its time.
class ScriptedRoster final : public Roster {
public:
    explicit ScriptedRoster(const Clock& clock) : clock_(clock) {}

    Task<Result<Time>> sign_in(NodeId, json::object about) override {
        asked.push_back("in " + json::serialize(about));
        co_await sleep_for(latency);
        const Time then = clock_.now() - behind;
        co_await sleep_for(latency);
        if (is_gone) {
            co_return fail(Code::storage_unavailable, "gone");
        }
        co_return then;
    }
    Task<Result<>> sign_out(NodeId) override {
        asked.emplace_back("out");
        co_return Result<>();
    }
    Task<Result<std::vector<RosterEntry>>> roster() override {
        co_return std::vector<RosterEntry>();
    }

    Millis latency{0};
    Millis behind{0};
    bool is_gone = false;
    std::vector<std::string> asked;

private:
    const Clock& clock_;
};

class RollCalls : public testing::Test {
protected:
    World world_;
    ScriptedRoster roster_{world_.time};
    SharedClock clock_{world_.time};
    int calls_ = 0;
    RollCall roll_call_{{world_.executor(), clock_, roster_, test::node_id(1), [this] {
                             return json::object{{"call", ++calls_}};
                         }}};
};

using testing::ElementsAre;

TEST_F(RollCalls, ANodeSaysThatItIsThereUntilItStops) {
    boost::asio::post(world_.io, [this] { roll_call_.start(); });
    world_.pass(2 * RollCall::kEvery);
    EXPECT_THAT(
        roster_.asked, ElementsAre(R"(in {"call":1})", R"(in {"call":2})", R"(in {"call":3})")
    );
    world_.finish(roll_call_.stop());
    EXPECT_EQ(roster_.asked.back(), "out");
    world_.pass(2 * RollCall::kEvery);
    EXPECT_EQ(roster_.asked.size(), 4U);
}

TEST_F(RollCalls, ClocksAreComparedHoweverLongAnAnswerTakes) {
    EXPECT_EQ(roll_call_.clock_ahead(), std::nullopt);
    roster_.latency = Millis(700);
    roster_.behind = Millis(3'600'000);
    boost::asio::post(world_.io, [this] { roll_call_.start(); });
    world_.pass(RollCall::kEvery);
    EXPECT_EQ(roll_call_.clock_ahead(), Millis(3'600'000));
    EXPECT_EQ(clock_.now(), world_.time.now() - Millis(3'600'000)) << "the database's time";
    roster_.behind = Millis(-20);
    world_.pass(2 * RollCall::kEvery);
    EXPECT_EQ(roll_call_.clock_ahead(), Millis(-20));
    EXPECT_EQ(clock_.now(), world_.time.now() + Millis(20)) << "it was set right meanwhile";
    roster_.behind = Millis(200);
    world_.pass(2 * RollCall::kEvery);
    EXPECT_EQ(roll_call_.clock_ahead(), Millis(200));
    EXPECT_EQ(clock_.now(), world_.time.now() + Millis(20)) << "too little to tell";
    world_.finish(roll_call_.stop());
}

TEST_F(RollCalls, ADatabaseThatIsGoneIsAskedAgainAndNotWaitedForAtTheEnd) {
    roster_.is_gone = true;
    boost::asio::post(world_.io, [this] { roll_call_.start(); });
    world_.pass(RollCall::kEvery);
    EXPECT_EQ(calls_, 2);
    EXPECT_EQ(roll_call_.clock_ahead(), std::nullopt);
    world_.finish(roll_call_.stop());
    EXPECT_THAT(roster_.asked, testing::Not(testing::Contains("out")));
}

}  // namespace
}  // namespace comfyd::cluster
