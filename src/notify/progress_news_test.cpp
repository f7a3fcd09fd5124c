#include "notify/progress_news.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::notify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Millis kInterval{1'000};
const Time kStart = from_unix_ms(1'700'000'000'000);

bool nobody(const Thread&) {
    return false;
}

class ProgressNewsTest : public testing::Test {
protected:
    bool put(const JobId& job, std::uint64_t sequence, Time now, const std::string& endpoint = "") {
        ProgressNews::News made;
        made.job.id = job;
        made.to.endpoint = endpoint;
        made.event.job = job;
        made.event.sequence = sequence;
        return news_.put(std::move(made), now);
    }
    std::vector<std::uint64_t> take(Time now, const ProgressNews::Busy& busy = nobody) {
        std::vector<std::uint64_t> taken;
        for (const auto& one : news_.take_due(now, busy)) {
            taken.push_back(one->event.sequence);
        }
        std::ranges::sort(taken);
        return taken;
    }

    ProgressNews news_{kInterval};
    const JobId job_ = JobId::make(kStart);
    const JobId other_ = JobId::make(kStart);
};

TEST_F(ProgressNewsTest, TheFirstIsSentAtOnceAndThenTheNewestOfEachSecond) {
    EXPECT_TRUE(put(job_, 1, kStart));
    EXPECT_THAT(take(kStart), ElementsAre(1U));
    EXPECT_TRUE(put(job_, 2, kStart + Millis(10)));
    EXPECT_FALSE(put(job_, 3, kStart + Millis(20))) << "the one before still waits";
    EXPECT_FALSE(put(job_, 4, kStart + Millis(999)));
    EXPECT_THAT(take(kStart + Millis(999)), IsEmpty());
    EXPECT_EQ(news_.next_due(), kStart + kInterval);
    EXPECT_THAT(take(kStart + kInterval), ElementsAre(4U));
    EXPECT_EQ(news_.next_due(), std::nullopt);
}

TEST_F(ProgressNewsTest, JobsDoNotWaitForEachOther) {
    put(job_, 1, kStart);
    EXPECT_THAT(take(kStart), ElementsAre(1U));
    put(other_, 7, kStart + Millis(1));
    put(job_, 2, kStart + Millis(1));
    EXPECT_THAT(take(kStart + Millis(1)), ElementsAre(7U));
    EXPECT_THAT(take(kStart + Millis(1'001)), ElementsAre(2U));
}

TEST_F(ProgressNewsTest, ALaterChangeMakesItWorthless) {
    put(job_, 5, kStart);
    news_.drop(job_, 4);
    EXPECT_EQ(news_.next_due(), kStart) << "the change came before it";
    news_.drop(other_, 9);
    news_.drop(job_, 6);
    EXPECT_EQ(news_.next_due(), std::nullopt);
    EXPECT_THAT(take(kStart), IsEmpty());
}

TEST_F(ProgressNewsTest, EachReceiverOfAJobHasItsOwn) {
    put(job_, 1, kStart, "a");
    put(job_, 2, kStart, "b");
    EXPECT_THAT(take(kStart), ElementsAre(1U, 2U));
    put(job_, 3, kStart + Millis(1), "a");
    put(job_, 4, kStart + Millis(1), "b");
    put(other_, 3, kStart + Millis(1), "a");
    news_.drop(job_, 5);
    EXPECT_THAT(take(kStart + kInterval), ElementsAre(3U)) << "the other job's";
}

TEST_F(ProgressNewsTest, ABusyJobIsTakenLater) {
    put(job_, 1, kStart);
    put(other_, 2, kStart);
    EXPECT_THAT(
        take(kStart, [this](const Thread& thread) { return thread.job == job_; }), ElementsAre(2U)
    );
    EXPECT_THAT(take(kStart), ElementsAre(1U));
}

TEST_F(ProgressNewsTest, TheNumberOfJobsIsBounded) {
    for (std::size_t i = 0; i < ProgressNews::kThreadsMax; ++i) {
        EXPECT_TRUE(put(JobId::make(kStart), i + 1, kStart));
    }
    EXPECT_FALSE(put(job_, 1, kStart));
    EXPECT_EQ(take(kStart).size(), ProgressNews::kThreadsMax);
    EXPECT_FALSE(put(job_, 1, kStart)) << "their second is not over";
    EXPECT_TRUE(put(job_, 1, kStart + kInterval));
}

}  // namespace
}  // namespace comfyd::notify
