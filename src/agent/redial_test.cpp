#include "agent/redial.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "agent/calls.hpp"

namespace comfyd::agent {
namespace {

using std::chrono::seconds;

// All is back within 10 s; of them, one is left for handshakes and looking.
constexpr Millis kBackWithin{9'000};

// From the moment when the call has ended on, nobody answers until `returns`: calls are refused at
// once, or there is silence until they are given up. When the first call begins that is taken.
Millis is_back_at(Redial& redial, Millis ended, Millis returns, Millis fails_after, auto& chance) {
    Millis now = ended + redial.after(Redial::Called::was_up, chance());
    while (now < returns) {
        now += fails_after;
        now += redial.after(Redial::Called::failed, chance());
    }
    return now;
}

TEST(Redial, FindsAGatewayWithinTenSecondsOfItsReturnHoweverLongItWasAway) {
    for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<> any(0, 1);
        const auto chance = [&] { return any(random); };
        for (const Millis fails_after : {Millis(0), Millis(20), Millis(kCallMax)}) {
            Redial redial(1);
            for (Millis away{10}; away < std::chrono::hours(3); away = away * 11 / 10 + Millis(7)) {
                const Millis back = is_back_at(redial, Millis(0), away, fails_after, chance);
                EXPECT_LE(back - away, kBackWithin) << away.count() << " ms away, seed " << seed;
            }
        }
    }
}

TEST(Redial, ALineThatIsCutIsNoticedAndCalledAnewWithinTenSeconds) {
    for (const double chance : {0.0, 0.5, 1.0}) {
        Redial redial(1);
        // With a word at once; without one when it has been silent for long enough.
        for (const Millis noticed : {Millis(0), Millis(kSilenceMax)}) {
            const auto same = [&] { return chance; };
            EXPECT_LE(is_back_at(redial, noticed, noticed, Millis(0), same), kBackWithin);
        }
    }
}

TEST(Redial, AsksTheNodesInTurnAndPausesOnlyAfterAll) {
    Redial redial(3);
    for (int round = 0; round < 4; ++round) {
        std::set<std::size_t> asked{redial.node()};
        EXPECT_EQ(redial.after(Redial::Called::elsewhere, 1), Millis(0));
        asked.insert(redial.node());
        EXPECT_EQ(redial.after(Redial::Called::failed, 1), Millis(0));
        asked.insert(redial.node());
        EXPECT_EQ(asked.size(), 3U);
        const Millis pause = redial.after(Redial::Called::elsewhere, 1);
        EXPECT_GT(pause, Millis(0));
        EXPECT_LE(pause, RedialPauses().elsewhere_max);
    }
    // The one that took the call is asked first when it ends.
    const std::size_t node = redial.node();
    EXPECT_EQ(redial.after(Redial::Called::was_up, 1), RedialPauses().min);
    EXPECT_EQ(redial.node(), node);
}

TEST(Redial, PausesAreSpreadAndGrowToTheirMost) {
    Redial redial(1);
    EXPECT_EQ(redial.after(Redial::Called::failed, 0), Millis(250));
    EXPECT_EQ(redial.after(Redial::Called::failed, 1), Millis(1'000));
    for (int i = 0; i < 10; ++i) {
        redial.after(Redial::Called::failed, 0.5);
    }
    EXPECT_EQ(redial.after(Redial::Called::failed, 0), Millis(2'000));
    EXPECT_EQ(redial.after(Redial::Called::failed, 1), Millis(4'000));
}

}  // namespace
}  // namespace comfyd::agent
