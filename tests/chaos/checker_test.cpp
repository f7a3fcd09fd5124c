// The checker sees what it is there to see.
#include "chaos/checker.hpp"

#include <gtest/gtest.h>

namespace comfyd::support {
namespace {

class CheckerTest : public testing::Test {
protected:
    std::size_t complaints_about_runs(std::string_view journal) {
        Checker checker(nobody_);
        checker.check_runs(journal);
        return checker.complaints().size();
    }

    Http nobody_{"http://127.0.0.1:1"};
};

TEST_F(CheckerTest, OneRunAfterTheOtherIsRight) {
    EXPECT_EQ(complaints_about_runs("start p1 w 10\nend p1 error 10\nstart p2 w 11\n"), 0U);
    EXPECT_EQ(complaints_about_runs("start p1 w 10\nstart p2 other 11\n"), 0U);
}

TEST_F(CheckerTest, TwoRunsAtATimeAreWrong) {
    EXPECT_EQ(complaints_about_runs("start p1 w 10\nstart p2 w 11\nend p1 success 10\n"), 1U);
    EXPECT_EQ(complaints_about_runs("away 11\nstart p1 w 10\nstart p2 w 11\n"), 1U);
    EXPECT_EQ(complaints_about_runs("away 10\nback 10\nstart p1 w 10\nstart p2 w 11\n"), 1U);
}

TEST_F(CheckerTest, WhoIsGoneOrAwayIsNoneOfThem) {
    EXPECT_EQ(complaints_about_runs("start p1 w 10\ngone 10\nstart p2 w 11\n"), 0U);
    EXPECT_EQ(complaints_about_runs("start p1 w 10\naway 10\nback 10\nstart p2 w 11\n"), 0U);
    EXPECT_EQ(complaints_about_runs("away 10\nstart p1 w 10\nback 10\nstart p2 w 11\n"), 0U);
}

ReceivedRequest message(std::string id, std::string event, std::string body = "{}") {
    ReceivedRequest made;
    made.headers.set("X-Execution-ID", "job");
    made.headers.set("webhook-id", std::move(id));
    made.headers.set("X-Webhook-Event", std::move(event));
    made.body = std::move(body);
    return made;
}

TEST_F(CheckerTest, MessagesAreRepeatedAsTheyWereAndNeverBehindLaterOnes) {
    const auto first = message("1", "execution.queued");
    const auto second = message("2", "execution.started");
    Checker patient(nobody_);
    patient.check_messages({first, first, second, second});
    EXPECT_TRUE(patient.complaints().empty());
    Checker late(nobody_);
    late.check_messages({first, second, first});
    EXPECT_EQ(late.complaints().size(), 1U);
    Checker changed(nobody_);
    changed.check_messages({first, message("1", "execution.queued", "{\"a\":1}")});
    EXPECT_EQ(changed.complaints().size(), 1U);
}

}  // namespace
}  // namespace comfyd::support
