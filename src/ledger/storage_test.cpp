#include "ledger/storage.hpp"

#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using testing::HasSubstr;

TEST(OpenStorage, OpensADatabaseFileByItsUrl) {
    TempFolder folder;
    ManualClock clock;
    const std::string url = "sqlite:" + (folder.path() / "made" / "here.db").string();
    auto storage = get(open_storage(url, {}, clock));
    auto job = make_new(simple_spec(), clock.now());
    const JobId id = job.change.job.id;
    EXPECT_TRUE(await_value(storage->accept(std::move(job))).created);
    EXPECT_GT(storage->storage_stats().commits, 0U);
    storage.reset();
    storage = get(open_storage(url, {}, clock));
    EXPECT_TRUE(await_value(storage->find(id)));
}

TEST(OpenStorage, OtherUrlsAreRefusedWithTheKnownOnes) {
    ManualClock clock;
    for (const char* url : {"", "/var/lib/comfyd.db", "mysql://localhost/comfyd", "sqlite"}) {
        const auto storage = open_storage(url, {}, clock);
        ASSERT_FALSE(storage) << url;
        EXPECT_EQ(storage.error().code, Code::config_invalid);
        EXPECT_THAT(storage.error().message, HasSubstr("sqlite:"));
    }
}

}  // namespace
}  // namespace comfyd::ledger::test
