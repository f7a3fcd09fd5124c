// An agent that everybody has forgotten: the real binary ends ComfyUI, itself and its machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/agent.hpp"
#include "support/cloud_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd {
namespace {

using support::AgentOptions;
using support::AgentProcess;
using support::CloudDouble;
using testing::HasSubstr;
using testing::Not;

AgentOptions on_a_pod(const CloudDouble& cloud, const std::string& id) {
    AgentOptions options;
    options.arguments = {"--lonely-s", "1", "--grace-s", "0"};
    options.environment = {
        {"COMFYD_FLEET", "f"},
        {"COMFYD_API_URL", cloud.url()},
        {"RUNPOD_POD_ID", id},
        {"RUNPOD_API_KEY", CloudDouble::kKey}
    };
    return options;
}

TEST(LonelyAgent, GivesItsMachineBack) {
    support::RunPodDouble cloud;
    const std::string id = cloud.add("comfyd-f-1");
    cloud.add("somebody-elses");
    AgentProcess agent(on_a_pod(cloud, id));
    ASSERT_EQ(agent.process().wait(std::chrono::seconds(60)), 0) << agent.log();
    EXPECT_THAT(cloud.machines(), testing::ElementsAre("somebody-elses"));
    EXPECT_THAT(agent.log(), HasSubstr("nothing to do"));
    EXPECT_THAT(agent.log(), Not(HasSubstr(CloudDouble::kKey)));
    // ComfyUI got neither the key nor anything of ours.
    const std::string told = support::read_file(agent.folder() + "/started.json");
    EXPECT_THAT(told, Not(HasSubstr(CloudDouble::kKey)));
    EXPECT_THAT(told, Not(HasSubstr("COMFYD_API_URL")));
    EXPECT_THAT(cloud.wrong(), testing::IsEmpty());
}

TEST(LonelyAgent, OneThatIsBusyStaysUntilItsPromptHasEnded) {
    support::RunPodDouble cloud;
    const std::string id = cloud.add("comfyd-f-1");
    const support::TempDir folder;
    AgentOptions options = on_a_pod(cloud, id);
    options.arguments = {"--lonely-s", "3", "--grace-s", "0"};
    options.double_arguments = "--journal " + (folder / "journal");
    AgentProcess agent(std::move(options));
    ASSERT_TRUE(agent.wait_for("ready")) << agent.log();
    // A prompt that runs for longer than it would wait.
    const auto accepted = agent.http().post_json(
        "/prompt", {{"prompt", support::text_to_image("slow", "slow=8000")}}
    );
    ASSERT_EQ(accepted.status, 200) << accepted.body;
    // Strangers who ask do not count.
    support::Http stranger(agent.url());
    EXPECT_TRUE(support::wait_until(
        [&] {
            static_cast<void>(stranger.get("/worker/v1/status"));
            return !agent.process().running();
        },
        std::chrono::seconds(60)
    ));
    EXPECT_THAT(support::read_file(folder / "journal"), HasSubstr("success"));
    EXPECT_TRUE(cloud.machines().empty()) << agent.log();
}

TEST(LonelyAgent, OneOfSomebodysOwnEndsNothing) {
    support::RunPodDouble cloud;
    const std::string id = cloud.add("comfyd-f-1");
    AgentOptions options = on_a_pod(cloud, id);
    options.environment.erase("COMFYD_API_URL");
    options.environment["COMFYD_GATEWAY"] = "http://127.0.0.1:1";
    options.environment["COMFYD_INSTANCE"] = "home";
    AgentProcess agent(std::move(options));
    EXPECT_EQ(agent.process().wait(std::chrono::seconds(60)), 0) << agent.log();
    EXPECT_EQ(cloud.machines().size(), 1U);
    EXPECT_EQ(cloud.asked("remove"), 0);
}

}  // namespace
}  // namespace comfyd
