// The whole agent in this process, before a ComfyUI that somebody else runs.
#include "agent/agent.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "support/http.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::agent {
namespace {

AgentOptions lonely_options(const support::TempDir& folder, std::atomic<int>& lonely) {
    AgentOptions options;
    options.listen = {"127.0.0.1", 0};
    options.folder = folder / "worker";
    options.comfyui.address = "127.0.0.1:1";
    options.comfyui.times.quiet = Millis(0);
    options.front.token = "0123456789abcdef";
    options.gateways = {"http://127.0.0.1:1"};
    options.instance = "home";
    options.grace = Millis(0);
    options.lonely_max = Millis(200);
    options.lonely = [&lonely] { ++lonely; };
    return options;
}

TEST(AgentInProcess, EndsItselfWithoutAGatewayAndWork) {
    const support::TempDir folder;
    std::atomic<int> lonely{0};
    auto agent = Agent::start(lonely_options(folder, lonely));
    ASSERT_TRUE(agent) << agent.error().message;
    EXPECT_TRUE(support::wait_until([&] { return lonely == 1; }));
    (*agent)->stop();
    EXPECT_EQ(lonely, 1);
    EXPECT_FALSE(std::filesystem::exists(folder / "worker/worker.json"));
}

TEST(AgentInProcess, TheSamePortAndFolderAreRefused) {
    const support::TempDir folder;
    std::atomic<int> lonely{0};
    AgentOptions options = lonely_options(folder, lonely);
    auto agent = Agent::start(options);
    ASSERT_TRUE(agent) << agent.error().message;
    const auto same_folder = Agent::start(options);
    ASSERT_FALSE(same_folder);
    EXPECT_EQ(same_folder.error().code, Code::conflict);
    options.folder = folder / "other";
    const auto url = net::Url::parse((*agent)->url());
    options.listen.port = url->port;
    const auto same_port = Agent::start(options);
    ASSERT_FALSE(same_port);
    EXPECT_EQ(same_port.error().code, Code::conflict);
}

}  // namespace
}  // namespace comfyd::agent
