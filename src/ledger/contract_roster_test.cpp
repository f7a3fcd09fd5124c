// What cluster::Roster promises, for every ledger that nodes share.
#include <gmock/gmock.h>

#include "ledger/shared_test_support.hpp"

namespace comfyd::ledger::test {
namespace {

class RosterContract : public SharedContract {
protected:
    Time sign_in(int number, const std::string& name) {
        return await_value(node(number).roster.sign_in(node(number).id, {{"name", name}}));
    }
    std::vector<std::string> names(int seen_by = 0) {
        std::vector<std::string> names;
        for (const cluster::RosterEntry& entry : await_value(node(seen_by).roster.roster())) {
            names.emplace_back(entry.about.at("name").as_string());
        }
        return names;
    }
};
INSTANTIATE_TEST_SUITE_P(
    Ledger, RosterContract, testing::ValuesIn(shared_backends()), shared_backend_name
);

using testing::ElementsAre;
using testing::IsEmpty;

TEST_P(RosterContract, WhoSignsInIsSeenByAll) {
    EXPECT_THAT(names(), IsEmpty());
    sign_in(1, "b");
    sign_in(0, "a");
    EXPECT_THAT(names(0), ElementsAre("b", "a"));
    EXPECT_THAT(names(1), ElementsAre("b", "a"));
}

TEST_P(RosterContract, WhatANodeSaysLastCounts) {
    sign_in(0, "a");
    sign_in(1, "b");
    sign_in(0, "another");
    EXPECT_THAT(names(), ElementsAre("another", "b"));
}

TEST_P(RosterContract, WhoSignsOutIsGone) {
    sign_in(0, "a");
    sign_in(1, "b");
    ASSERT_TRUE(await(node(0).roster.sign_out(node(0).id)));
    EXPECT_THAT(names(), ElementsAre("b"));
    ASSERT_TRUE(await(node(0).roster.sign_out(node(0).id)));
}

TEST_P(RosterContract, HowLongAgoANodeWasSeenIsTold) {
    sign_in(0, "a");
    storage_->pass(Millis(60'000));
    sign_in(1, "b");
    const auto entries = await_value(node(1).roster.roster());
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].node, node(0).id);
    EXPECT_GE(entries[0].seen_ago, Millis(60'000));
    EXPECT_LT(entries[1].seen_ago, Millis(60'000));
}

TEST_P(RosterContract, WhoWasNotSeenForLongIsForgotten) {
    sign_in(0, "a");
    storage_->pass(cluster::kRosterKeeps + Millis(1'000));
    EXPECT_THAT(names(), ElementsAre("a"));
    sign_in(1, "b");
    EXPECT_THAT(names(), ElementsAre("b"));
}

TEST_P(RosterContract, TheDatabaseTellsItsTime) {
    const Time first = sign_in(0, "a");
    const Time second = sign_in(0, "a");
    EXPECT_GE(second, first);
}

}  // namespace
}  // namespace comfyd::ledger::test
