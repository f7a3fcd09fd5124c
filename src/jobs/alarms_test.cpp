#include "jobs/alarms.hpp"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>

namespace comfyd::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AlarmsTest : public testing::Test {
protected:
    AlarmsTest() {
        tasks_.spawn(
            "alarms",
            alarms_.run(
                [this](const JobId& id, Time now) { rung_.emplace_back(id, now); },
                [this] { ++looks_; }
            )
        );
        go_on();
    }
    ~AlarmsTest() override {
        tasks_.cancel();
        go_on();
    }
    void go_on() {
        context_.restart();
        context_.poll();
    }
    // Those that wait are woken by an alarm for nobody.
    void pass(Millis time) {
        day_.advance(time);
        pace_.advance(time);
        alarms_.set(day_.now() + std::chrono::hours(24), JobId::make(day_.now()));
        go_on();
    }

    ManualClock day_;
    ManualClock pace_;
    boost::asio::io_context context_;
    TaskGroup tasks_{context_.get_executor()};
    Alarms alarms_{context_.get_executor(), day_, pace_};
    std::vector<std::pair<JobId, Time>> rung_;
    int looks_ = 0;
};

TEST_F(AlarmsTest, RingWhenTheirTimeHasCome) {
    const JobId job = JobId::make(day_.now());
    const Time at = day_.now() + Millis(1'000);
    alarms_.set(at, job);
    pass(Millis(999));
    EXPECT_THAT(rung_, IsEmpty());
    pass(Millis(1));
    EXPECT_THAT(rung_, ElementsAre(std::pair(job, at)));
    alarms_.set(day_.now() + Millis(10), job);
    alarms_.clear(day_.now() + Millis(10), job);
    pass(Millis(10));
    EXPECT_EQ(rung_.size(), 1U);
}

TEST_F(AlarmsTest, AClockThatIsSetBackDelaysNothing) {
    constexpr Millis kBack{300'000};
    const JobId job = JobId::make(day_.now());
    const Time at = day_.now() + Millis(1'000);
    alarms_.set(at, job);
    alarms_.set_queue(at);
    alarms_.rest();
    go_on();
    day_.advance(-kBack);
    pass(Alarms::kStoragePause);
    EXPECT_FALSE(alarms_.is_resting());
    EXPECT_EQ(looks_, 1) << "the rest is over";
    EXPECT_THAT(rung_, IsEmpty());
    pass(Millis(1'000) - Alarms::kStoragePause);
    EXPECT_THAT(rung_, ElementsAre(std::pair(job, at))) << "and is told that it is time";
    EXPECT_GE(looks_, 2);

    // What is set from then on goes by the new time.
    const JobId other = JobId::make(day_.now());
    const Time then = day_.now() + Millis(50);
    alarms_.set(then, other);
    pass(Millis(49));
    EXPECT_EQ(rung_.size(), 1U);
    pass(Millis(1));
    EXPECT_THAT(rung_.back(), std::pair(other, then));
    // Nor does it matter how often.
    alarms_.set(day_.now() + Millis(50), other);
    for (int i = 0; i < 5; ++i) {
        day_.advance(-kBack);
        pass(Millis(9));
    }
    EXPECT_EQ(rung_.size(), 2U);
    pass(Millis(5));
    EXPECT_EQ(rung_.size(), 3U);
}

}  // namespace
}  // namespace comfyd::jobs
