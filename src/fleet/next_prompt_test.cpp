// A worker's next prompt, which may be given to it while the one before still runs.
#include "fleet/hand_ahead.hpp"
#include "fleet/test_support.hpp"
#include "jobs/give_back.hpp"

namespace comfyd::fleet {
namespace {

class NextPromptTest : public FleetTest {
protected:
    void start_holding(const std::string& version = support::DoubleOptions().version) {
        start({
            .version = version,
            .journal = (folder_.path() / "journal").string(),
            .faults = {.run = {.held = true}},
        });
    }
    void let_go() { folder_.write("let-go", ""); }
    jobs::Assignment known_to_take(Millis expected) {
        auto made = assignment(kPicture);
        made.expected = expected;
        return made;
    }
    bool is_available() {
        return on_core([this] { return fleet_->find("gpu")->available(); });
    }
    bool wait_until_it_runs(const PromptId& prompt) {
        return support::wait_until([&] { return executions(prompt) == 1; });
    }
    static bool is_given_back(const RunResult& result) {
        return !result && result.error().details.contains(jobs::kGivenBack);
    }
};

TEST_F(NextPromptTest, IsTakenWhileAShortRunIsAboutToEnd) {
    start_holding();
    const auto first = begin(known_to_take(Millis(1)));
    ASSERT_TRUE(support::wait_until([this] { return is_available(); }));
    EXPECT_EQ(worker_info().status, jobs::WorkerStatus::running);
    const auto second = begin(known_to_take(Millis(1)));
    EXPECT_FALSE(is_available()) << "one may wait, not two";
    ASSERT_TRUE(wait_until_it_runs(first->assignment.prompt));
    let_go();
    EXPECT_TRUE(end(*first));
    EXPECT_TRUE(end(*second));
    EXPECT_EQ(executions(first->assignment.prompt), 1U);
    EXPECT_EQ(executions(second->assignment.prompt), 1U);
    EXPECT_TRUE(is_available());
}

TEST_F(NextPromptTest, IsAskedForWhileTheRunIsUnderWay) {
    start_holding();
    int told = 0;  // read and written on the core
    on_core([&] { fleet_->on_change([&told](const auto&) { ++told; }); });
    const auto first = begin(known_to_take(Millis(1)));
    EXPECT_TRUE(support::wait_until([&] { return on_core([&] { return told > 0; }); }));
    let_go();
    EXPECT_TRUE(end(*first));
    wait(fleet_->stop());
}

TEST_F(NextPromptTest, IsNotTakenBehindARunOfUnknownLength) {
    start_holding();
    const auto first = begin(assignment(kPicture));
    ASSERT_TRUE(wait_until_it_runs(first->assignment.prompt));
    EXPECT_FALSE(is_available());
    let_go();
    EXPECT_TRUE(end(*first));
}

TEST_F(NextPromptTest, IsNotTakenWhereAnInterruptCouldHitIt) {
    start_holding("0.3.56");
    const auto first = begin(known_to_take(Millis(1)));
    ASSERT_TRUE(wait_until_it_runs(first->assignment.prompt));
    EXPECT_FALSE(is_available());
    let_go();
    EXPECT_TRUE(end(*first));
}

TEST_F(NextPromptTest, IsGivenBackWhereTheRunBeforeItDoesNotEnd) {
    start_holding();
    const auto first = begin(known_to_take(Millis(1)));
    ASSERT_TRUE(support::wait_until([this] { return is_available(); }));
    const auto second = begin(known_to_take(Millis(1)));
    const auto result = end(*second);
    EXPECT_TRUE(is_given_back(result));
    EXPECT_EQ(executions(second->assignment.prompt), 0U);
    EXPECT_FALSE(is_available()) << "nobody else waits behind that run";
    let_go();
    EXPECT_TRUE(end(*first));
    EXPECT_EQ(worker_info().failed, 0U);
}

TEST_F(NextPromptTest, GoesOnWhereItHasBegunAndNobodyToldOfTheEndBeforeIt) {
    options_.poll_interval = options_.poll_interval_slow = std::chrono::hours(1);
    start({.journal = (folder_.path() / "journal").string()});
    auto silent = known_to_take(Millis(1));
    silent.workflow = picture_with("ws_silence");
    const auto first = begin(std::move(silent));
    ASSERT_TRUE(support::wait_until([this] { return is_available(); }));
    auto held = known_to_take(Millis(1));
    held.workflow = picture_with("held,ws_silence");
    const auto second = begin(std::move(held));
    ASSERT_TRUE(wait_until_it_runs(second->assignment.prompt));
    EXPECT_TRUE(support::wait_until([this] {
        return comfy_->executions().asked_meanwhile["/queue"] > 0;
    })) << "whether it waits still";
    stop(*second, Code::cancelled);
    const auto result = end(*second);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled) << "until then it was not given back";
    stop(*first, Code::cancelled);
    end(*first);
}

TEST_F(NextPromptTest, HasHadNoAttemptWhereItsWorkerIsLostBeforeItRan) {
    start_holding();
    const auto first = begin(known_to_take(Millis(1)));
    ASSERT_TRUE(wait_until_it_runs(first->assignment.prompt));
    ASSERT_TRUE(support::wait_until([this] { return is_available(); }));
    const auto second = begin(known_to_take(Millis(1)));
    ASSERT_TRUE(support::wait_until([this] { return comfy_->queue_remaining() == 2; }));
    comfy_->crash();
    const auto lost = end(*first);
    const auto waited = end(*second);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, Code::worker_lost);
    EXPECT_FALSE(is_given_back(lost));
    EXPECT_TRUE(is_given_back(waited));
}

TEST_F(NextPromptTest, CanBeCancelledWhileItWaits) {
    start_holding();
    const auto first = begin(known_to_take(Millis(1)));
    ASSERT_TRUE(support::wait_until([this] { return is_available(); }));
    const auto second = begin(known_to_take(Millis(1)));
    stop(*second, Code::cancelled);
    const auto result = end(*second);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    EXPECT_EQ(executions(second->assignment.prompt), 0U);
    let_go();
    EXPECT_TRUE(end(*first));
}

}  // namespace
}  // namespace comfyd::fleet
