#include "ledger/history.hpp"

#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

TEST(History, IsReadWhileAServerUsesTheFolder) {
    const TempFolder folder;
    ManualClock clock;
    const auto path = folder.path() / "comfyd.db";
    const auto ledger = get(SqliteLedger::open({.path = path}, clock));
    const Time begin = clock.now();
    std::vector<JobId> made;
    for (int i = 0; i < 5; ++i) {
        auto job = make_new(simple_spec(), clock.now());
        made.push_back(job.change.job.id);
        await_value(ledger->accept(std::move(job)));
        clock.advance(Millis(1'000));
    }
    std::vector<JobId> seen;
    const auto note = [&](const jobs::Job& job, const jobs::Spec& spec) {
        EXPECT_FALSE(spec.workflow.empty());
        seen.push_back(job.id);
        return seen.size() < 3;
    };
    ASSERT_TRUE(read_history(path, begin, clock.now(), note));
    EXPECT_THAT(seen, testing::ElementsAre(made[4], made[3], made[2])) << "until it says false";
    seen.clear();
    ASSERT_TRUE(read_history(path, clock.now(), clock.now() + Millis(1), note));
    EXPECT_TRUE(seen.empty());
}

TEST(History, AFolderWithoutADatabaseIsSaid) {
    const TempFolder folder;
    const auto read = read_history(
        folder.path() / "comfyd.db", Time(), Time(), [](const auto&, const auto&) { return true; }
    );
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::storage_unavailable);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "comfyd.db"));
}

}  // namespace
}  // namespace comfyd::ledger::test
