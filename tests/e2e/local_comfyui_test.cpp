// `comfyd serve --comfyui DIR`: the real binary starts the real agents, and these a ComfyUI whose
// main.py is the double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "local_comfyui_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

TEST_F(LocalComfyUi, IsStartedUsedAndStopped) {
    start(2);
    ASSERT_TRUE(wait_until([&] { return ready() == 2; }, kLong)) << comfyd_->log();
    EXPECT_EQ(machines().size(), 2U);
    const auto job = comfyd_->wait_finished(comfyd_->submit(text_to_image("a fox")));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    ASSERT_EQ(resize(1).status, 200);
    EXPECT_TRUE(wait_until([&] { return machines().size() == 1; }, kLong));
    const auto later = comfyd_->wait_finished(comfyd_->submit(text_to_image("another fox")));
    EXPECT_EQ(Comfyd::status_of(later), "succeeded") << json::serialize(later);
}

TEST_F(LocalComfyUi, GoesOnWithItsPromptWhileComfydIsKilled) {
    start(1);
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    const auto before = machines();
    const std::string id = comfyd_->submit(text_to_image("a slow fox", "slow=3000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 1; }));
    comfyd_->restart();
    const auto job = comfyd_->wait_finished(id, kLong);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    EXPECT_EQ(starts(), 1U) << "it was run once";
    EXPECT_EQ(machines(), before) << "by the process that was there";
}

TEST_F(LocalComfyUi, AFolderThatIsNoneIsRefusedWithWhatToDo) {
    Process process(
        {COMFYD_BINARY,
         "serve",
         "--listen",
         "127.0.0.1:0",
         "--data",
         folder_ / "data",
         "--comfyui",
         folder_ / "modules"}
    );
    EXPECT_NE(process.wait().value_or(0), 0);
    EXPECT_THAT(process.errors(), HasSubstr("main.py"));
}

}  // namespace
}  // namespace comfyd::support
