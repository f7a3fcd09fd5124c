// A crowd of sockets is told the latest length of its queue, and no more often than it takes to
// tell so many.
#include "api/dialects/native/audience.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

using std::chrono::milliseconds;

class AudienceTest : public testing::TestWithParam<std::size_t> {
protected:
    AudienceTest() {
        for (std::size_t i = 0; i < GetParam(); ++i) {
            mailboxes_.push_back(std::make_shared<Mailbox>(io_.get_executor()));
            audience_.attach("me", "client " + std::to_string(i), mailboxes_.back());
        }
    }

    void change(std::size_t unfinished) {
        audience_.set_unfinished("me", unfinished);
        audience_.tell_crowd("me", now_);
    }
    // How many messages were posted since this was asked last, to all together.
    std::size_t posts() {
        io_.restart();
        return io_.poll();
    }

    boost::asio::io_context io_;
    std::vector<std::shared_ptr<Mailbox>> mailboxes_;
    Audience audience_;
    Audience::Ticks::time_point now_ = Audience::Ticks::time_point() + std::chrono::hours(1);
};
INSTANTIATE_TEST_SUITE_P(Sockets, AudienceTest, testing::Values(17U, 400U, 5'000U));

TEST_P(AudienceTest, IsToldAtOnceAndThenWhatIsLatest) {
    ASSERT_TRUE(audience_.is_crowd("me"));
    change(1);
    EXPECT_EQ(posts(), GetParam());
    EXPECT_FALSE(audience_.next_due());
    for (std::size_t unfinished = 2; unfinished < 1'000; ++unfinished) {
        change(unfinished);
    }
    EXPECT_EQ(posts(), 0U) << "a thousand changes in one moment";
    const auto due = audience_.next_due();
    ASSERT_TRUE(due);
    audience_.tell_due(*due - milliseconds(1));
    EXPECT_EQ(posts(), 0U);
    audience_.tell_due(*due);
    EXPECT_EQ(posts(), GetParam());
    EXPECT_FALSE(audience_.next_due());
    audience_.tell_due(*due + std::chrono::hours(1));
    EXPECT_EQ(posts(), 0U) << "nothing is owed";
}

TEST_P(AudienceTest, CostsABoundedNumberOfMessages) {
    const auto end = now_ + std::chrono::seconds(10);
    std::size_t sent = 0;
    for (std::size_t unfinished = 1; now_ < end; now_ += milliseconds(1)) {
        change(unfinished++);
        audience_.tell_due(now_);
        sent += posts();
    }
    constexpr std::size_t kMessagesPerSecond = 20'000;
    EXPECT_LE(sent, 10 * kMessagesPerSecond + 2 * GetParam());
    EXPECT_GE(sent, 10 * GetParam());
}

TEST_P(AudienceTest, IsToldWhatIsOwedAtTheEnd) {
    change(1);
    change(0);
    posts();
    audience_.tell_owed();
    EXPECT_EQ(posts(), GetParam());
    audience_.tell_owed();
    EXPECT_EQ(posts(), 0U);
}

TEST_P(AudienceTest, OwesNothingToThoseWhoLeft) {
    change(1);
    change(0);
    for (const auto& mailbox : mailboxes_) {
        audience_.detach("me", mailbox.get());
    }
    EXPECT_FALSE(audience_.next_due());
}

}  // namespace
}  // namespace comfyd::api::native
