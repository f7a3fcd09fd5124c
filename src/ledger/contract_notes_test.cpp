// What jobs::Notebook promises, for every storage.
#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using NotesContract = Contract;
INSTANTIATE_TEST_SUITE_P(Ledger, NotesContract, testing::ValuesIn(backends()), backend_name);

TEST_P(NotesContract, ANoteIsWhatWasWrittenLast) {
    EXPECT_FALSE(await_value(notebook().read_note("learned")));
    ASSERT_TRUE(await(notebook().write_note("learned", "{\"a\": 1}")));
    ASSERT_TRUE(await(notebook().write_note("other", "")));
    ASSERT_TRUE(await(notebook().write_note("learned", "{\"a\": 2}")));
    EXPECT_EQ(await_value(notebook().read_note("learned")), "{\"a\": 2}");
    EXPECT_EQ(await_value(notebook().read_note("other")), "");
}

TEST_P(NotesContract, NotesOutliveARestart) {
    const std::string large(2'000'000, 'x');
    ASSERT_TRUE(await(notebook().write_note("learned", large)));
    storage_->reopen();
    EXPECT_EQ(await_value(notebook().read_note("learned")), large);
}

}  // namespace
}  // namespace comfyd::ledger::test
