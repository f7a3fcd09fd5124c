#include "limits/quotas.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "limits/test_support.hpp"
#include "net/test_support.hpp"

namespace comfyd::limits {
namespace {

using test::directory_of;
using test::tenant;
using namespace std::chrono_literals;

// What is stored of one tenant, and how often somebody asked.
struct Stored {
    std::size_t unfinished = 0;
    double gpu_seconds_today = 0;
    double gpu_seconds_before = 0;  // in this month
    double usd_today = 0;
    double usd_before = 0;
    std::uint64_t bytes = 0;
    bool has_room = true;
    bool is_broken = false;
    int asked = 0;
    std::vector<jobs::StatsQuery> queries{};
};

Task<std::size_t> count(Stored& stored) {
    ++stored.asked;
    co_return stored.unfinished;
}

Task<Result<jobs::Stats>> sum(Stored& stored, jobs::StatsQuery query, Time today) {
    ++stored.asked;
    if (stored.is_broken) {
        co_return fail(Code::storage_unavailable, "the database is away");
    }
    const bool is_day = query.from >= today;
    jobs::Stats stats;
    stats.totals.gpu = std::chrono::round<Millis>(std::chrono::duration<double>(
        stored.gpu_seconds_today + (is_day ? 0 : stored.gpu_seconds_before)
    ));
    stats.totals.cost_usd = stored.usd_today + (is_day ? 0 : stored.usd_before);
    stored.queries.push_back(std::move(query));
    co_return stats;
}

Task<Result<std::uint64_t>> weigh_bytes(Stored& stored) {
    ++stored.asked;
    co_return stored.bytes;
}

class QuotaTest : public testing::Test {
protected:
    static constexpr const char* kNow = "2026-02-14T21:00:00.000Z";

    void set(json::object members) {
        board_.set(directory_of({tenant("acme", std::move(members))}));
        clock_.advance(Millis(5'000));  // what was read before is not fresh any more
    }
    Result<std::shared_ptr<void>> submit(std::string who = "acme") {
        return loop_.run(quotas_.may_submit(std::move(who), ""));
    }
    Error refusal() {
        auto asked = submit();
        return asked ? Error(Code::internal, "nothing was refused") : asked.error();
    }
    Time today() const { return std::chrono::floor<std::chrono::days>(clock_.now()); }

    Stored stored_;
    ManualClock clock_{*parse_rfc3339(kNow)};
    auth::DirectoryBoard board_{directory_of({})};
    Book book_{board_, Tiers(), ""};
    Quotas quotas_{
        book_,
        clock_,
        {[this](std::string) { return count(stored_); },
         [this](jobs::StatsQuery query) { return sum(stored_, std::move(query), today()); },
         [this](std::string) { return weigh_bytes(stored_); },
         [this]() -> Result<> {
             return stored_.has_room ? Result<>() : fail(Code::storage_unavailable, "full");
         }}
    };
    net::test::Loop loop_;
};

TEST_F(QuotaTest, NothingIsAskedAboutThoseWithoutALimit) {
    EXPECT_TRUE(submit());
    EXPECT_TRUE(loop_.run(quotas_.may_store("acme", 1ULL << 50)));
    EXPECT_EQ(stored_.asked, 0);
}

TEST_F(QuotaTest, JobsThatWaitOrRunAreCounted) {
    set({{"queued_max", 3}});
    stored_.unfinished = 2;
    auto third = submit();
    ASSERT_TRUE(third);
    // While it is on its way nobody else gets its place.
    const Error refused = refusal();
    EXPECT_EQ(refused.code, Code::queue_full);
    EXPECT_EQ(refused.details.at("reason"), "concurrent_limit_exceeded");
    EXPECT_TRUE(refused.details.at("retry_after").is_null());
    EXPECT_EQ(refused.details.at("limit"), 3);
    third->reset();  // it did not come in
    EXPECT_TRUE(submit());
    stored_.unfinished = 3;
    EXPECT_EQ(refusal().code, Code::queue_full);
    EXPECT_TRUE(submit("another"));
    EXPECT_EQ(quotas_.refused(), 2u);
}

TEST_F(QuotaTest, GpuSecondsAndMoneyBeginAnewWithTheDayAndTheMonth) {
    set({{"gpu_seconds_per_day", 100}});
    stored_.gpu_seconds_today = 99;
    stored_.gpu_seconds_before = 10'000;
    EXPECT_TRUE(submit());
    stored_.gpu_seconds_today = 100;
    clock_.advance(Millis(2'000));
    const Error day = refusal();
    EXPECT_EQ(day.code, Code::rate_limited);
    EXPECT_EQ(day.details.at("reason"), "quota_exceeded");
    EXPECT_EQ(day.details.at("retry_after").as_int64(), 3 * 3600 - 7);
    EXPECT_EQ(stored_.queries.back().from, *parse_rfc3339("2026-02-14T00:00:00.000Z"));

    set({{"gpu_seconds_per_month", 5'000}});
    const Error month = refusal();
    EXPECT_EQ(month.details.at("reason"), "quota_exceeded");
    EXPECT_EQ(month.details.at("retry_after").as_int64(), 14 * 86'400 + 3 * 3600 - 12);
    EXPECT_EQ(stored_.queries.back().from, *parse_rfc3339("2026-02-01T00:00:00.000Z"));

    stored_.usd_today = 1;
    stored_.usd_before = 2;
    set({{"usd_per_day", 1.5}, {"usd_per_month", 3.5}});
    EXPECT_TRUE(submit());
    set({{"usd_per_day", 1}});
    EXPECT_EQ(refusal().details.at("reason"), json::value(kMoneyGone));
    set({{"usd_per_month", 3}});
    EXPECT_EQ(refusal().details.at("reason"), json::value(kMoneyGone));
    // In December the next month is of the next year.
    clock_.advance(*parse_rfc3339("2026-12-31T23:59:00.000Z") - clock_.now());
    EXPECT_EQ(refusal().details.at("retry_after").as_int64(), 60);
}

TEST_F(QuotaTest, WhatWasReadIsGoodForTwoSecondsAndNotIntoTheNextDay) {
    set({{"gpu_seconds_per_day", 100}});
    stored_.gpu_seconds_today = 500;
    EXPECT_FALSE(submit());
    const int asked = stored_.asked;
    EXPECT_FALSE(submit());
    EXPECT_EQ(stored_.asked, asked);
    clock_.advance(today() + std::chrono::days(1) - clock_.now() - Millis(500));
    EXPECT_FALSE(submit());
    stored_.gpu_seconds_today = 0;
    clock_.advance(Millis(1'000));
    EXPECT_TRUE(submit());
}

TEST_F(QuotaTest, ALedgerThatIsAwayLetsNobodyIn) {
    set({{"usd_per_day", 1}});
    stored_.is_broken = true;
    EXPECT_EQ(refusal().code, Code::storage_unavailable);
}

TEST_F(QuotaTest, FilesHaveALimitAndAFullTenantStartsNothing) {
    set({{"stored_mb_max", 2}});
    stored_.bytes = 1 << 20;
    EXPECT_TRUE(loop_.run(quotas_.may_store("acme", 1 << 20)));
    const auto refused = loop_.run(quotas_.may_store("acme", (1 << 20) + 1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::storage_full);
    EXPECT_EQ(refused.error().details.at("reason"), "quota_exceeded");
    EXPECT_TRUE(submit());
    stored_.bytes = 2 << 20;
    clock_.advance(Millis(3'000));
    EXPECT_EQ(refusal().code, Code::storage_full);
}

TEST_F(QuotaTest, AFullDiskTakesNothingOfAnybody) {
    stored_.has_room = false;
    EXPECT_EQ(refusal().code, Code::storage_unavailable);
    EXPECT_FALSE(loop_.run(quotas_.may_store("acme", 1)));
}

}  // namespace
}  // namespace comfyd::limits
