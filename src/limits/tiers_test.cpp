#include "limits/tiers.hpp"

#include <gtest/gtest.h>

#include "limits/book.hpp"
#include "limits/test_support.hpp"

namespace comfyd::limits {
namespace {

using test::directory_of;
using test::tenant;

TEST(Tiers, HaveTheNumbersOfTheSeeds) {
    const Tiers tiers;
    EXPECT_EQ(tiers.of("free").requests_per_minute, 10);
    EXPECT_EQ(tiers.of("free").running_max, 2);
    EXPECT_EQ(tiers.of("basic").requests_per_minute, 60);
    EXPECT_EQ(tiers.of("basic").running_max, 5);
    EXPECT_EQ(tiers.of("premium").requests_per_minute, 300);
    EXPECT_EQ(tiers.of("premium").running_max, 20);
    for (const AllowanceMember& member : kAllowanceMembers) {
        const auto of = [&](const char* tier) { return tiers.of(tier).*member.place; };
        EXPECT_LE(of("premium"), of("pro")) << member.name;
        EXPECT_LE(of("pro"), of("enterprise")) << member.name;
        EXPECT_EQ(of("platinum"), of("free")) << member.name;
    }
}

TEST(Tiers, WhatTheOperatorSetGoesFirstThenTheTokenThenTheDefault) {
    const Tiers tiers;
    const auto per_minute = [&](const auth::Tenant* of, const char* token, const char* otherwise) {
        return tiers.resolve(of, token, otherwise).requests_per_minute;
    };
    const auth::Tenant plain = tenant("a", {{"weight", 2}});
    const auth::Tenant pro = tenant("a", {{"tier", "pro"}});
    EXPECT_EQ(tiers.resolve(nullptr, "", ""), Allowance()) << "nobody named a limit";
    EXPECT_EQ(tiers.resolve(&plain, "", ""), Allowance());
    EXPECT_EQ(per_minute(&plain, "free", "basic"), 10);
    EXPECT_EQ(per_minute(&pro, "free", "basic"), 600);
    EXPECT_EQ(per_minute(nullptr, "", "basic"), 60);
    EXPECT_EQ(per_minute(nullptr, "gold", ""), 10);

    const auth::Tenant own = tenant(
        "a",
        {{"tier", "free"},
         {"requests_per_minute", 0},
         {"running_max", 7},
         {"queued_max", 3},
         {"stored_mb_max", 5},
         {"gpu_seconds_per_day", 1.5},
         {"gpu_seconds_per_month", 20},
         {"usd_per_day", 0.5},
         {"usd_per_month", 4}}
    );
    EXPECT_EQ(
        tiers.resolve(&own, "", ""),
        (Allowance{
            .requests_per_minute = 0,
            .running_max = 7,
            .queued_max = 3,
            .stored_mb_max = 5,
            .gpu_seconds_per_day = 1.5,
            .gpu_seconds_per_month = 20,
            .usd_per_day = 0.5,
            .usd_per_month = 4
        })
    );
}

TEST(Book, KnowsChangesAndWhatTokensNamed) {
    auth::DirectoryBoard board(directory_of({tenant("a", {{"tier", "basic"}})}));
    Book book(board, Tiers(), "");
    EXPECT_EQ(book.of("a", "").requests_per_minute, 60);
    EXPECT_EQ(book.of("b", ""), Allowance());
    book.hear("b", "premium");
    EXPECT_EQ(book.of("b", "").requests_per_minute, 300);
    EXPECT_EQ(book.of("b", "free").requests_per_minute, 10);
    EXPECT_EQ(book.tier_of("b", ""), "premium");
    board.set(directory_of({tenant("b", {{"tier", "free"}})}));
    EXPECT_EQ(book.of("a", ""), Allowance());
    EXPECT_EQ(book.tier_of("b", ""), "free") << "set by the operator";
}

}  // namespace
}  // namespace comfyd::limits
