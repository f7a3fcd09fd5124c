#include "limits/rate_limiter.hpp"

#include <gmock/gmock.h>

#include "limits/test_support.hpp"
#include "net/test_support.hpp"

namespace comfyd::limits {
namespace {

using test::caller;
using test::directory_of;
using test::tenant;
using testing::HasSubstr;

class Rates : public testing::Test {
protected:
    Verdict ask(const auth::Caller& who, double weight = 1) {
        auto demand = limiter_.demand_of(who, weight);
        return demand ? loop_.run(limiter_.take(std::move(*demand))) : Verdict{};
    }
    // How many of so many are let through at once.
    int passed(const auth::Caller& who, int tries, double weight = 1) {
        int count = 0;
        for (int i = 0; i < tries; ++i) {
            count += ask(who, weight).allowed ? 1 : 0;
        }
        return count;
    }

    ManualClock clock_;
    auth::DirectoryBoard board_{directory_of(
        {tenant("small", {{"tier", "free"}}), tenant("slow", {{"requests_per_minute", 0.5}})}
    )};
    Book book_{board_, Tiers(), ""};
    RateLimiter limiter_{book_, clock_};
    net::test::Loop loop_;
};

TEST_F(Rates, OnlyThoseWhoHaveALimitAreLimited) {
    EXPECT_FALSE(limiter_.demand_of(caller("local"), 1)) << "nothing is even asked";
    EXPECT_FALSE(limiter_.demand_of(caller("small"), 0)) << "reads cost nothing";
    EXPECT_EQ(passed(caller("small"), 15), 10);
    EXPECT_EQ(passed(caller("local"), 1000), 1000);
    EXPECT_EQ(passed(caller("other", "basic"), 100), 60) << "as its token says";
    EXPECT_EQ(limiter_.counts().refused, 45u);
    clock_.advance(Millis(6'000));
    EXPECT_EQ(passed(caller("small"), 5), 1);
    clock_.advance(Millis(3'600'000));
    EXPECT_EQ(passed(caller("small"), 15), 10);
}

TEST_F(Rates, AnswersSayWhatIsLeft) {
    const Verdict first = ask(caller("small"));
    EXPECT_EQ(first.policies, R"("minute";q=10;w=60, "running";q=2;qu="concurrent-requests")");
    EXPECT_EQ(first.state, R"("minute";r=9;t=6)");
    EXPECT_EQ(passed(caller("small"), 9), 9);
    const Verdict refused = ask(caller("small"));
    EXPECT_FALSE(refused.allowed);
    EXPECT_EQ(refused.state, R"("minute";r=0;t=6)");
    const Error error = refused.error();
    EXPECT_EQ(error.code, Code::rate_limited);
    EXPECT_EQ(error.details.at("reason"), "rate_limit_exceeded");
    EXPECT_EQ(error.details.at("retry_after"), 6);
    EXPECT_EQ(error.details.at("limit"), 10);
    EXPECT_EQ(error.details.at("remaining"), 0);
    EXPECT_EQ(error.details.at("allowed"), false);
    EXPECT_THAT(ask(caller("slow")).policies, HasSubstr(R"("minute";q=1;w=120)"));
}

TEST_F(Rates, AKeyHasItsOwnWithinItsTenants) {
    auth::Caller one = caller("small");
    one.key_id = "one";
    one.requests_per_minute = 4;
    auth::Caller two = caller("small");
    two.key_id = "two";
    EXPECT_EQ(passed(one, 10), 4);
    // What was refused by the key's limit has cost the tenant nothing.
    EXPECT_EQ(passed(two, 10), 6);
    clock_.advance(Millis(15'000));
    const Verdict next = ask(one);
    EXPECT_TRUE(next.allowed);
    EXPECT_THAT(next.policies, HasSubstr(R"("key";q=4;w=60)"));
    // The same id of another tenant is another key.
    auth::Caller stranger = caller("local");
    stranger.key_id = "one";
    stranger.requests_per_minute = 4;
    EXPECT_EQ(passed(stranger, 10), 4);
}

TEST_F(Rates, SmallThingsCostLess) {
    EXPECT_EQ(passed(caller("small"), 100, 0.2), 50);
}

// Another node's Redis, which is there or not.
class Elsewhere final : public SharedMeter {
public:
    Task<std::optional<Weighed>> take(std::string, std::vector<Bucket> buckets, double cost)
        override {
        if (is_away) {
            co_return std::nullopt;
        }
        co_return meter.take(buckets, cost, now);
    }

    bool is_away = false;
    std::int64_t now = 1'000'000'000;
    Meter meter;
};

TEST_F(Rates, ANodeThatIsCutOffAllowsItsPart) {
    Elsewhere shared;
    RateLimiter limiter(book_, clock_, &shared);
    limiter.set_nodes(4);
    const auto pass = [&](const auth::Caller& who, int tries) {
        int count = 0;
        for (int i = 0; i < tries; ++i) {
            auto demand = limiter.demand_of(who, 1);
            count += loop_.run(limiter.take(std::move(*demand))).allowed ? 1 : 0;
        }
        return count;
    };
    EXPECT_EQ(pass(caller("small"), 7), 7);
    shared.is_away = true;
    EXPECT_EQ(pass(caller("small"), 10), 2) << "a fourth of ten";
    EXPECT_EQ(pass(caller("slow"), 10), 1) << "never nothing at all";
    EXPECT_EQ(limiter.counts().alone, 20u);
    shared.is_away = false;
    EXPECT_EQ(pass(caller("small"), 7), 3);
}

TEST(Meter, ForgetsTheOldestAndStaysSmall) {
    Meter meter(100);
    const Rate rate = per_minute(1);
    for (int i = 0; i < 5'000; ++i) {
        EXPECT_TRUE(meter.take({{"sender " + std::to_string(i), rate}}, 1, 1'000'000).fits());
    }
    EXPECT_EQ(meter.size(), 100u);
    EXPECT_FALSE(meter.take({{"sender 4999", rate}}, 1, 1'000'000).fits());
    EXPECT_FALSE(meter.look({{"sender 4950", rate}}, 1, 1'000'000).fits());
}

}  // namespace
}  // namespace comfyd::limits
