// Workers that nobody can reach, of a cluster: they call the node that leads, whichever it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "agent/calls.hpp"
#include "cluster/balancer.hpp"
#include "cluster/cluster.hpp"
#include "support/agent.hpp"
#include "support/kubelet.hpp"

namespace comfyd::support {
namespace {

constexpr std::chrono::seconds kLong{120};

class WorkerCalls : public testing::Test {
protected:
    void start(const std::string& config) {
        ClusterOptions options;
        options.workers = 0;
        // A prompt of a leader that died is looked for until its worker has called the next.
        options.arguments = {
            "--config", folder_.write("cluster.yaml", config), "--set", "fleet.lost_after_s=15"
        };
        cluster_ = std::make_unique<Cluster>(std::move(options));
    }
    // The one that does not lead is asked first.
    std::string gateways() {
        const std::size_t leader = cluster_->leader().value_or(0);
        return cluster_->node(1 - leader).url() + ", " + cluster_->node(leader).url() + "/";
    }
    std::string journal() const { return folder_ / "journal"; }
    std::size_t starts() const {
        const std::string text = read_file(journal());
        std::size_t count = 0;
        for (auto at = text.find("start"); at != std::string::npos;
             at = text.find("start", at + 1)) {
            ++count;
        }
        return count;
    }
    void expect_succeeded(Comfyd& node, const std::string& id) {
        const json::value job = node.wait_finished(id, kLong);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << cluster_->logs();
    }
    // A prompt runs while the leader goes; the one that leads then brings it to its end.
    void expect_to_survive(const std::function<void(Comfyd&)>& end) {
        const std::size_t leader = *cluster_->leader();
        Comfyd& other = cluster_->node(1 - leader);
        const std::size_t before = starts();
        const std::string id = other.submit(text_to_image(std::to_string(before), "slow=8000"));
        ASSERT_TRUE(wait_until([&] { return starts() == before + 1; }, kLong)) << cluster_->logs();
        end(cluster_->node(leader));
        expect_succeeded(other, id);
        EXPECT_EQ(starts(), before + 1) << "the prompt ran twice" << cluster_->logs();
        EXPECT_EQ(cluster_->leader(), 1 - leader);
        expect_succeeded(other, other.submit(text_to_image("after " + std::to_string(before))));
        cluster_->node(leader).start();
    }
    bool is_let_in(std::size_t node, const std::string& instance, const std::string& token) {
        net::Headers headers;
        headers.set(agent::kInstanceHeader, instance);
        headers.set(agent::kTokenHeader, token);
        headers.set(agent::kSessionHeader, "a-stranger");
        return cluster_->node(node)
            .http()
            .ws(std::string(agent::kControlRoute), headers)
            ->connected();
    }

    TempDir folder_;
    std::unique_ptr<Cluster> cluster_;
};

TEST_F(WorkerCalls, GoToTheNodeThatLeadsAndMoveWithTheLead) {
    start("workers:\n  - {url: \"worker://home\", token: " + std::string(kAgentToken) + "}\n");
    AgentOptions options;
    options.environment = {{"COMFYD_GATEWAY", gateways()}, {"COMFYD_INSTANCE", "home"}};
    options.double_arguments = "--journal " + journal();
    options.has_port = false;
    AgentProcess agent(std::move(options));
    ASSERT_TRUE(cluster_->wait_ready()) << agent.log() << cluster_->logs();
    for (std::size_t i = 0; i < 6; ++i) {
        Comfyd& node = cluster_->node(i % 2);
        expect_succeeded(node, node.submit(text_to_image("job " + std::to_string(i))));
    }
    EXPECT_EQ(starts(), 6U);
    const std::size_t leader = *cluster_->leader();
    EXPECT_TRUE(is_let_in(leader, "home", kAgentToken));
    EXPECT_FALSE(is_let_in(1 - leader, "home", kAgentToken)) << "it does not lead";
    EXPECT_FALSE(is_let_in(leader, "home", "some-other-token-0123456789"));
    EXPECT_FALSE(is_let_in(1 - leader, "home", "some-other-token-0123456789"));

    expect_to_survive([](Comfyd& node) { node.kill(); });
    expect_to_survive([](Comfyd& node) { node.stop(); });
}

TEST_F(WorkerCalls, FindItBehindABalancer) {
    start("workers:\n  - {url: \"worker://home\", token: " + std::string(kAgentToken) + "}\n");
    const Balancer balancer({cluster_->node(0).url(), cluster_->node(1).url()});
    AgentOptions options;
    options.environment = {{"COMFYD_GATEWAY", balancer.url()}, {"COMFYD_INSTANCE", "home"}};
    options.double_arguments = "--journal " + journal();
    options.has_port = false;
    AgentProcess agent(std::move(options));
    ASSERT_TRUE(cluster_->wait_ready()) << agent.log() << cluster_->logs();
    for (std::size_t i = 0; i < 6; ++i) {
        Comfyd& node = cluster_->node(i % 2);
        expect_succeeded(node, node.submit(text_to_image("job " + std::to_string(i))));
    }
    EXPECT_EQ(starts(), 6U);
    expect_to_survive([](Comfyd& node) { node.kill(); });
}

TEST_F(WorkerCalls, ARentedMachineIsKnownToWhoLeadsNext) {
    fleet::test::ApiServer api;
    start(
        "public_url: https://comfyd.example.com\n"
        "providers: {k: {kind: kubernetes, dials_in: true, kubeconfig: '" +
        folder_.write("kubeconfig", kubeconfig_of(api)) +
        "'}}\n"
        "pools: [{name: default, size: 1, template: {image: 'comfyui:1'},\n"
        "         offers: [{provider: k}]}]\n"
    );
    Kubelet kubelet(api, gateways(), journal());
    ASSERT_TRUE(cluster_->wait_ready()) << cluster_->logs();
    expect_to_survive([](Comfyd& node) { node.kill(); });
    const auto pods = kubelet.pods();
    ASSERT_EQ(pods.size(), 1U) << "another was ordered";
    const std::string instance = pods.begin()->first;
    const std::string token = pods.begin()->second.environment.at("COMFYD_WORKER_TOKEN");
    const std::size_t leader = *cluster_->leader();
    EXPECT_TRUE(is_let_in(leader, instance, token));
    EXPECT_FALSE(is_let_in(1 - leader, instance, token));
    EXPECT_FALSE(is_let_in(leader, instance, "some-other-token-0123456789"));
}

}  // namespace
}  // namespace comfyd::support
