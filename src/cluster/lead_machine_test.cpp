#include "cluster/lead_machine.hpp"

#include <gtest/gtest.h>

#include <variant>

namespace comfyd::cluster {
namespace {

using M = LeadMachine;

constexpr Millis kStart{1'000'000};

Taken taken(std::uint64_t epoch) {
    return Taken{jobs::Term{"main", epoch, NodeId{}}, Millis(0)};
}
Result<std::optional<Taken>> lead(std::uint64_t epoch) {
    return std::optional(taken(epoch));
}
Result<std::optional<Taken>> nothing() {
    return std::optional<Taken>();
}
tl::unexpected<Error> unclear() {
    return fail(Code::storage_unavailable, "no answer");
}

template <class Kind>
bool says(const M::Action& action) {
    return std::holds_alternative<Kind>(action);
}
std::optional<Millis> waits_until(const M::Action& action) {
    return std::get<M::Wait>(action).until;
}
LeadEnd why(const M::Action& action) {
    return std::get<M::StepDown>(action).why;
}

// One that has led since kStart.
class Leading : public testing::Test {
protected:
    Leading() {
        EXPECT_TRUE(says<M::Take>(machine_.next(kStart)));
        machine_.took(lead(7), kStart + Millis(10));
        EXPECT_TRUE(says<M::Begin>(machine_.next(kStart + Millis(10))));
    }
    LeadMachine machine_;
};

TEST(LeadMachine, AsksAgainWhileAnotherLeads) {
    LeadMachine machine;
    EXPECT_TRUE(says<M::Take>(machine.next(kStart)));
    EXPECT_EQ(waits_until(machine.next(kStart)), std::nullopt) << "one request at a time";
    machine.took(nothing(), kStart + Millis(10));
    EXPECT_EQ(waits_until(machine.next(kStart + Millis(10))), kStart + kTryEvery);
    EXPECT_TRUE(says<M::Take>(machine.next(kStart + kTryEvery)));
    machine.took(unclear(), kStart + kTryEvery + Millis(900));
    EXPECT_TRUE(says<M::Take>(machine.next(kStart + kTryEvery + Millis(900))));
    EXPECT_EQ(machine.trusted_until(), std::nullopt);
}

TEST(LeadMachine, AsksAtOnceWhenNobodyMayLead) {
    LeadMachine machine;
    EXPECT_TRUE(says<M::Take>(machine.next(kStart)));
    machine.took(nothing(), kStart + Millis(10));
    machine.may_be_free();
    EXPECT_TRUE(says<M::Take>(machine.next(kStart + Millis(20))));
    machine.may_be_free();  // the request under way may be too early
    EXPECT_EQ(waits_until(machine.next(kStart + Millis(20))), std::nullopt);
    machine.took(nothing(), kStart + Millis(30));
    EXPECT_TRUE(says<M::Take>(machine.next(kStart + Millis(30))));
    machine.took(nothing(), kStart + Millis(40));
    EXPECT_EQ(waits_until(machine.next(kStart + Millis(40))), kStart + Millis(30) + kTryEvery);
}

TEST_F(Leading, HearsWithoutWonderThatNobodyLeads) {
    machine_.may_be_free();
    EXPECT_EQ(waits_until(machine_.next(kStart + Millis(20))), kStart + kRenewEvery);
}

TEST_F(Leading, TrustCountsFromTheSending) {
    EXPECT_EQ(machine_.trusted_until(), kStart + kTrust);
    const Millis sent = kStart + kRenewEvery;
    EXPECT_EQ(waits_until(machine_.next(kStart + Millis(20))), sent);
    EXPECT_TRUE(says<M::Renew>(machine_.next(sent)));
    EXPECT_EQ(waits_until(machine_.next(sent)), kStart + kTrust);
    machine_.renewed({}, kStart + kTrust - Millis(1));
    EXPECT_EQ(machine_.trusted_until(), sent + kTrust);
}

TEST_F(Leading, AnUnclearRenewalIsRepeatedWhileTrustLasts) {
    Millis now = kStart + kRenewEvery;
    int sent = 0;
    for (; now < kStart + kTrust; now += kTryEvery) {
        EXPECT_TRUE(says<M::Renew>(machine_.next(now)));
        machine_.renewed(unclear(), now);
        sent += 1;
    }
    EXPECT_EQ(sent, 5);
    EXPECT_EQ(why(machine_.next(kStart + kTrust)), LeadEnd::unconfirmed);
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    EXPECT_FALSE(machine_.leads());
}

TEST_F(Leading, StepsDownWithoutWaitingForAnAnswer) {
    EXPECT_TRUE(says<M::Renew>(machine_.next(kStart + kRenewEvery)));
    EXPECT_EQ(why(machine_.next(kStart + kTrust)), LeadEnd::unconfirmed);
    EXPECT_EQ(waits_until(machine_.next(kStart + kTrust)), std::nullopt);
    machine_.stepped_down(kStart + kTrust);
    EXPECT_EQ(waits_until(machine_.next(kStart + kTrust + kTryEvery)), std::nullopt)
        << "the renewal is under way still";
    machine_.renewed({}, kStart + kTrust + kTryEvery);
    EXPECT_EQ(machine_.trusted_until(), std::nullopt) << "too late";
    EXPECT_TRUE(says<M::Take>(machine_.next(kStart + kTrust + kTryEvery)));
}

TEST_F(Leading, ARenewalThatIsRefusedEndsTheTermAtOnce) {
    EXPECT_TRUE(says<M::Renew>(machine_.next(kStart + kRenewEvery)));
    machine_.renewed(fail(Code::lead_lost, "another leads"), kStart + kRenewEvery);
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    EXPECT_EQ(why(machine_.next(kStart + kRenewEvery)), LeadEnd::taken_over);
}

TEST_F(Leading, WhoRefusesAnEarlierTermSaysNothingOfThisOne) {
    machine_.refused(6);
    EXPECT_NE(machine_.trusted_until(), std::nullopt);
    machine_.refused(7);
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    EXPECT_EQ(why(machine_.next(kStart + Millis(20))), LeadEnd::taken_over);
}

TEST_F(Leading, TrustThatRanOutDoesNotComeBackWithAnAnswer) {
    // The node was stopped: the answer waits, and so does the time.
    const Millis sent = kStart + kRenewEvery;
    EXPECT_TRUE(says<M::Renew>(machine_.next(sent)));
    machine_.renewed({}, kStart + kTrust);
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    EXPECT_EQ(why(machine_.next(kStart + kTrust)), LeadEnd::unconfirmed);
}

TEST_F(Leading, TheTermEndsWithItsSession) {
    EXPECT_TRUE(says<M::Renew>(machine_.next(kStart + kRenewEvery)));
    machine_.session_lost();
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    machine_.renewed({}, kStart + kRenewEvery);
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    EXPECT_EQ(why(machine_.next(kStart + kRenewEvery)), LeadEnd::session_lost);
    machine_.stepped_down(kStart + kRenewEvery);
    EXPECT_TRUE(says<M::Take>(machine_.next(kStart + kRenewEvery + kTryEvery)));
}

TEST(LeadMachine, ALeadOfASessionThatIsGoneIsGivenBack) {
    LeadMachine machine;
    EXPECT_TRUE(says<M::Take>(machine.next(kStart)));
    machine.session_lost();
    machine.took(lead(3), kStart + Millis(5));
    EXPECT_TRUE(says<M::Resign>(machine.next(kStart + Millis(5))));
}

TEST_F(Leading, WhoStopsLetsGoBeforeOthersHearOfIt) {
    machine_.stop();
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    const Millis now = kStart + Millis(50);
    EXPECT_EQ(why(machine_.next(now)), LeadEnd::resigned);
    EXPECT_EQ(waits_until(machine_.next(now)), std::nullopt);
    machine_.stepped_down(now);
    const auto action = machine_.next(now);
    EXPECT_EQ(std::get<M::Resign>(action).term.epoch, 7U);
    machine_.resigned(now);
    EXPECT_TRUE(says<M::Rest>(machine_.next(now)));
}

TEST_F(Leading, WhoLetsGoLeavesTheLeadToOthersFirst) {
    machine_.let_go();
    EXPECT_EQ(machine_.trusted_until(), std::nullopt);
    const Millis now = kStart + Millis(50);
    EXPECT_EQ(why(machine_.next(now)), LeadEnd::resigned);
    machine_.stepped_down(now);
    EXPECT_TRUE(says<M::Resign>(machine_.next(now)));
    machine_.resigned(now);
    const auto again = waits_until(machine_.next(now));
    ASSERT_TRUE(again);
    EXPECT_GT(*again, now + 2 * kTryEvery);
    EXPECT_TRUE(says<M::Take>(machine_.next(*again)));
}

TEST(LeadMachine, ALeadThatComesTooLateIsGivenBack) {
    LeadMachine machine;
    EXPECT_TRUE(says<M::Take>(machine.next(kStart)));
    const Millis now = kStart + kTrust;
    machine.took(lead(3), now);
    EXPECT_FALSE(machine.leads());
    EXPECT_TRUE(says<M::Resign>(machine.next(now)));
    machine.resigned(now);
    const auto again = waits_until(machine.next(now));
    ASSERT_TRUE(again);
    EXPECT_TRUE(says<M::Take>(machine.next(*again)));
}

TEST(LeadMachine, ALeadThatIsTakenWhileItStopsIsGivenBack) {
    LeadMachine machine;
    EXPECT_TRUE(says<M::Take>(machine.next(kStart)));
    machine.stop();
    EXPECT_EQ(waits_until(machine.next(kStart)), std::nullopt);
    machine.took(lead(3), kStart + Millis(5));
    EXPECT_TRUE(says<M::Resign>(machine.next(kStart + Millis(5))));
    machine.resigned(kStart + Millis(9));
    EXPECT_TRUE(says<M::Rest>(machine.next(kStart + Millis(9))));
}

TEST(LeadMachine, WhoHasNothingToLetGoRestsAtOnce) {
    LeadMachine machine;
    machine.stop();
    EXPECT_TRUE(says<M::Rest>(machine.next(kStart)));
}

}  // namespace
}  // namespace comfyd::cluster
