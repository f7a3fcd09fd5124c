#include "autoscale/memory.hpp"

#include <gtest/gtest.h>

namespace comfyd::autoscale {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

Time at(const char* text) {
    return *parse_rfc3339(text);
}

TEST(Arrivals, AreASpeed) {
    Arrivals arrivals;
    const Time start = at("2026-11-18T10:00:00Z");
    EXPECT_EQ(arrivals.rate(start, seconds(60)), 0);
    for (int i = 0; i <= 600; ++i) {  // several looks a second
        arrivals.note(start + Millis(200) * i, 0.4 * i);
    }
    const Time now = start + seconds(120);
    EXPECT_NEAR(arrivals.rate(now, seconds(60)), 2, 0.1);
    EXPECT_NEAR(arrivals.rate(now, seconds(6)), 2, 0.5);
    EXPECT_NEAR(arrivals.rate(now + seconds(30), seconds(60)), 1, 0.1);
    EXPECT_EQ(arrivals.rate(now + hours(1), seconds(60)), 0);
    arrivals.note(now + seconds(1), 3);  // whoever counts began anew
    EXPECT_EQ(arrivals.rate(now + seconds(1), seconds(60)), 0);
}

TEST(RecentMost, ForgetsWhatIsOlderThanItsWindow) {
    RecentMost most;
    const Time start = at("2026-11-18T10:00:00Z");
    int second = 0;
    for (const int value : {1, 5, 3, 3, 2, 4}) {
        most.note(start + seconds(second++), value, seconds(3));
    }
    EXPECT_EQ(most.most(), 4);
    most.note(start + seconds(20), 0, seconds(3));
    EXPECT_EQ(most.most(), 0);
}

TEST(Spending, IsCountedByHourDayAndMonth) {
    Spending spending;
    spending.add(at("2026-11-18T22:30:00Z"), at("2026-11-18T23:30:00Z"), 2);
    const Time late = at("2026-11-18T23:30:00Z");
    EXPECT_NEAR(spending.spent(Span::hour, late), 1, 1e-9) << "since 23:00";
    EXPECT_NEAR(spending.spent(Span::day, late), 2, 1e-9);
    EXPECT_NEAR(spending.spent(Span::month, late), 2, 1e-9);
    spending.add(late, at("2026-11-19T00:30:00Z"), 4);
    const Time next = at("2026-11-19T00:30:00Z");
    EXPECT_NEAR(spending.spent(Span::day, next), 2, 1e-9);
    EXPECT_NEAR(spending.spent(Span::month, next), 6, 1e-9);
    EXPECT_EQ(spending.spent(Span::hour, next + hours(1)), 0);
    EXPECT_EQ(spending.spent(Span::month, at("2026-12-01T00:00:00Z")), 0);
    const Spending stored = Spending::from_json(spending.to_json());
    EXPECT_EQ(stored.spent(Span::month, next), spending.spent(Span::month, next));
}

TEST(Spending, SpansBeginAndEndInUtc) {
    EXPECT_EQ(beginning(Span::month, at("2028-02-29T12:00:00Z")), at("2028-02-01T00:00:00Z"));
    EXPECT_EQ(ending(Span::month, at("2026-12-31T23:59:59Z")), at("2027-01-01T00:00:00Z"));
    EXPECT_EQ(ending(Span::day, at("2026-12-31T23:59:59Z")), at("2027-01-01T00:00:00Z"));
    EXPECT_EQ(ending(Span::hour, at("2026-12-31T22:59:59Z")), at("2026-12-31T23:00:00Z"));
}

TEST(Spending, TheLimitThatIsNearestCounts) {
    Spending one;
    Spending two;
    const Time now = at("2026-11-18T23:30:00Z");
    one.add(now - hours(10), now, 1);
    two.add(now - hours(2), now, 1);
    const Budget budget{.usd_per_day = 24, .usd_per_month = 15};
    const auto found = tightest(budget, {&one, &two}, now);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->span, Span::month);
    EXPECT_NEAR(found->part(), 0.8, 1e-9);
    EXPECT_NEAR(found->left_usd(), 3, 1e-9);
    EXPECT_FALSE(tightest({}, {&one}, now));
}

TEST(Starts, ArePercentilesByPlace) {
    Starts starts;
    EXPECT_EQ(starts.seconds("cloud", 0.5), Starts::kUsual);
    for (int i = 1; i <= 100; ++i) {
        starts.note("cloud", i);
    }
    EXPECT_NEAR(starts.seconds("cloud", 0.5), 85, 1) << "of the latest 32";
    EXPECT_NEAR(starts.seconds("cloud", 0.9), 97, 1);
    EXPECT_EQ(starts.seconds("elsewhere", 0.5), starts.seconds("cloud", 0.5));
    starts.note("cloud", -1);
    starts.note("cloud", std::numeric_limits<double>::infinity());
    EXPECT_NEAR(starts.seconds("cloud", 1), 100, 0);
    const Starts stored = Starts::from_json(starts.to_json());
    EXPECT_EQ(stored.seconds("cloud", 0.9), starts.seconds("cloud", 0.9));
    for (int i = 0; i < 1'000; ++i) {
        starts.note(std::to_string(i), 1);
    }
    EXPECT_LE(starts.to_json().size(), Starts::kPlacesMax);
}

class HistoryOfDays : public testing::Test {
protected:
    // `machines` that are busy in an hour of each day from the first on.
    void days(std::initializer_list<double> machines) {
        for (const double busy : machines) {
            for (int hour = 0; hour < 24; ++hour) {
                history_.add(now_, hour == 6 ? busy * 3'600 : 0);
                now_ += hours(1);
            }
        }
    }
    History history_;
    Time now_ = at("2026-11-02T00:00:00Z");
};

TEST_F(HistoryOfDays, SaysNothingBeforeItKnowsTwoDays) {
    EXPECT_FALSE(history_.forecast(now_));
    days({5});
    EXPECT_FALSE(history_.forecast(now_ + hours(6)));
    days({5});
    const auto forecast = history_.forecast(now_ + hours(6));
    ASSERT_TRUE(forecast);
    EXPECT_EQ(forecast->machines, 5);
    EXPECT_FALSE(forecast->is_trusted()) << "it was never compared";
}

TEST_F(HistoryOfDays, IsTrustedWhereItWasRight) {
    days({5, 5, 5, 6});
    const auto steady = history_.forecast(now_ + hours(6));
    ASSERT_TRUE(steady);
    EXPECT_EQ(steady->days, 4);
    EXPECT_TRUE(steady->is_trusted()) << *steady->error;
    days({1, 30, 2, 40, 1});
    const auto wild = history_.forecast(now_ + hours(6));
    ASSERT_TRUE(wild);
    EXPECT_FALSE(wild->is_trusted()) << *wild->error;
}

TEST_F(HistoryOfDays, IsBoundedAndOutlivesARestart) {
    for (int i = 0; i < 40; ++i) {
        days({3});
    }
    const History stored = History::from_json(history_.to_json());
    EXPECT_EQ(stored.forecast(now_ + hours(6))->machines, 3);
    EXPECT_LE(json::serialize(history_.to_json()).size(), 2'000U);
    days({});
    EXPECT_FALSE(history_.came(now_ - hours(24 * 20)));
    history_.add(now_ + hours(24 * 30), 1);  // nobody looked for a month
    EXPECT_FALSE(history_.forecast(now_ + hours(24 * 30)));
}

TEST(StoredMemory, OddTextsAreNoMemory) {
    for (const char* text :
         {R"({})",
          R"({"starts": 1, "spent": [], "history": null})",
          R"({"starts": {"a": "x", "b": [1, "y", -4, 1e400]}})",
          R"({"spent": {"hour": {"began": "now", "usd": 1}, "day": {"began": 5, "usd": -3}}})",
          R"({"history": {"first": 5, "last": 900000000000, "seconds": {}}})",
          R"({"history": {"first": 5, "last": 3, "seconds": {"4": 1}}})",
          R"({"history": {"first": 1, "last": 3, "seconds": {"2": "x", "zzz": 7}}})"}) {
        const auto parsed = json::parse_object(text);
        const Memory memory = Memory::from_json(parsed ? *parsed : json::object());
        EXPECT_EQ(memory.spent.spent(Span::day, Time(Millis(10))), 0) << text;
        EXPECT_FALSE(memory.history.forecast(Time(hours(2)))) << text;
    }
}

TEST(Minimum, HoldsAtItsHours) {
    const Minimum weekdays{0b0011111, 8 * 60, 18 * 60, 2};
    EXPECT_TRUE(weekdays.holds(at("2026-11-18T08:00:00Z")));  // a Wednesday
    EXPECT_FALSE(weekdays.holds(at("2026-11-18T18:00:00Z")));
    EXPECT_FALSE(weekdays.holds(at("2026-11-21T12:00:00Z")));
    const Minimum night{0b0010000, 22 * 60, 6 * 60, 1};  // from Friday on
    EXPECT_TRUE(night.holds(at("2026-11-20T23:00:00Z")));
    EXPECT_TRUE(night.holds(at("2026-11-21T05:59:00Z")));
    EXPECT_FALSE(night.holds(at("2026-11-21T06:00:00Z")));
    EXPECT_FALSE(night.holds(at("2026-11-20T05:00:00Z")));
}

}  // namespace
}  // namespace comfyd::autoscale
