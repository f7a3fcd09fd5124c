// What cluster::Leases promises, for every ledger that nodes share.
#include <gmock/gmock.h>

#include "ledger/shared_test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using cluster::kLeaseLife;
using cluster::kSendTime;

constexpr Millis kMoment{200};       // more than nothing, less than anything that counts
constexpr Millis kAllowance{4'000};  // for a database whose own clock goes on meanwhile

using LeasesContract = SharedContract;
INSTANTIATE_TEST_SUITE_P(
    Ledger, LeasesContract, testing::ValuesIn(shared_backends()), shared_backend_name
);

TEST_P(LeasesContract, OneNodeLeads) {
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->term.domain, "main");
    EXPECT_EQ(taken->term.node, node(0).id);
    EXPECT_GE(taken->term.epoch, 1U);
    EXPECT_EQ(taken->quiet_in, Millis(0)) << "there was nobody before";
    EXPECT_FALSE(take(1));
    EXPECT_FALSE(renew(0, taken->term));
}

TEST_P(LeasesContract, ALeaseThatIsRenewedLasts) {
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    for (int i = 0; i < 3; ++i) {
        storage_->pass(kLeaseLife - kAllowance);
        EXPECT_FALSE(take(1));
        EXPECT_FALSE(renew(0, taken->term));
    }
}

TEST_P(LeasesContract, ALeaseThatRanOutIsTaken) {
    const auto first = take(0);
    ASSERT_TRUE(first);
    storage_->pass(kLeaseLife + kMoment);
    const auto second = take(1);
    ASSERT_TRUE(second);
    EXPECT_GT(second->term.epoch, first->term.epoch);
    EXPECT_LE(second->quiet_in, kSendTime - kMoment);
    EXPECT_GT(second->quiet_in, kSendTime - kMoment - kAllowance);
    EXPECT_EQ(renew(0, first->term), Code::lead_lost);
    EXPECT_FALSE(renew(1, second->term));
}

TEST_P(LeasesContract, ALeaseThatRanOutMayBeRenewedWhileNobodyTookIt) {
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    storage_->pass(10 * kLeaseLife);
    EXPECT_FALSE(renew(0, taken->term));
    EXPECT_FALSE(take(1));
}

TEST_P(LeasesContract, WithItsSessionALeaseIsFree) {
    const auto first = take(0);
    ASSERT_TRUE(first);
    storage_->cut_session(0);
    const auto second = take(1);
    ASSERT_TRUE(second);
    EXPECT_GT(second->term.epoch, first->term.epoch);
    EXPECT_LE(second->quiet_in, kLeaseLife + kSendTime) << "it may send as long as it trusts";
    EXPECT_GT(second->quiet_in, kLeaseLife + kSendTime - kAllowance);
}

TEST_P(LeasesContract, WhoResignsHasEndedWhatItSent) {
    const auto first = take(0);
    ASSERT_TRUE(first);
    ASSERT_TRUE(await(node(0).leases.resign(first->term)));
    EXPECT_EQ(renew(0, first->term), Code::lead_lost);
    const auto second = take(1);
    ASSERT_TRUE(second);
    EXPECT_GT(second->term.epoch, first->term.epoch);
    EXPECT_EQ(second->quiet_in, Millis(0));
}

TEST_P(LeasesContract, AResignationDoesNotSpeakForLeadersBefore) {
    ASSERT_TRUE(take(0));
    storage_->cut_session(0);
    const auto second = take(1);
    ASSERT_TRUE(second);
    ASSERT_TRUE(await(node(1).leases.resign(second->term)));
    const auto third = take(0);
    ASSERT_TRUE(third);
    EXPECT_GT(third->quiet_in, kLeaseLife + kSendTime - kAllowance);
    EXPECT_LE(third->quiet_in, second->quiet_in);
}

TEST_P(LeasesContract, ALateResignationEndsNothing) {
    const auto first = take(0);
    ASSERT_TRUE(first);
    storage_->pass(kLeaseLife + kMoment);
    const auto second = take(1);
    ASSERT_TRUE(second);
    EXPECT_TRUE(await(node(0).leases.resign(first->term)));
    EXPECT_FALSE(renew(1, second->term));
    EXPECT_FALSE(take(0));
}

TEST_P(LeasesContract, WhoDidNotHearThatItLeadsTakesItAgain) {
    const auto first = take(0);
    ASSERT_TRUE(first);
    const auto again = take(0);
    ASSERT_TRUE(again);
    EXPECT_GT(again->term.epoch, first->term.epoch);
    EXPECT_EQ(renew(0, first->term), Code::lead_lost);
    EXPECT_FALSE(renew(0, again->term));
}

TEST_P(LeasesContract, ATermIsThatOfItsNode) {
    const auto taken = take(0);
    ASSERT_TRUE(taken);
    jobs::Term term = taken->term;
    term.node = node(1).id;
    EXPECT_EQ(renew(1, term), Code::lead_lost);
    EXPECT_TRUE(await(node(1).leases.resign(term)));
    EXPECT_FALSE(renew(0, taken->term));
}

TEST_P(LeasesContract, DomainsAreLedApart) {
    const auto one = take(0, "east");
    const auto other = take(1, "west");
    ASSERT_TRUE(one);
    ASSERT_TRUE(other);
    EXPECT_FALSE(take(1, "east"));
    storage_->cut_session(0);
    EXPECT_TRUE(take(1, "east"));
    EXPECT_FALSE(renew(1, other->term));
}

TEST_P(LeasesContract, AllAreShown) {
    const auto taken = take(0, "east");
    ASSERT_TRUE(taken);
    EXPECT_FALSE(renew(0, taken->term, 42));
    const auto resigned = take(1, "west");
    ASSERT_TRUE(resigned);
    ASSERT_TRUE(await(node(1).leases.resign(resigned->term)));
    int shown = 0;
    for (const cluster::Lease& lease : await_value(node(1).leases.all())) {
        if (lease.term.domain == "east") {
            EXPECT_EQ(lease.term, taken->term);
            EXPECT_EQ(lease.queued, 42U);
            EXPECT_LE(lease.expires_in, kLeaseLife);
            EXPECT_GT(lease.expires_in, kLeaseLife - kAllowance);
            shown += 1;
        } else if (lease.term.domain == "west") {
            EXPECT_EQ(lease.term.node, NodeId{});
            EXPECT_EQ(lease.term.epoch, resigned->term.epoch);
            EXPECT_LE(lease.expires_in, Millis(0));
            shown += 1;
        }
    }
    EXPECT_EQ(shown, 2);
}

}  // namespace
}  // namespace comfyd::ledger::test
