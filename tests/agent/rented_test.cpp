// Machines that comfyd rents and cannot reach: the real binary orders Pods of an API server that is
// a double, what runs in them is the real agent, and that calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <set>

#include "agent/calls.hpp"
#include "support/comfyd.hpp"
#include "support/kubelet.hpp"

namespace comfyd {
namespace {

using fleet::test::ApiServer;
using support::AgentProcess;
using support::Comfyd;
using support::Kubelet;
using support::text_to_image;
using support::wait_until;
using testing::HasSubstr;

constexpr const char* kPublicUrl = "https://comfyd.example.com";
constexpr std::chrono::seconds kLong{120};

class RentedMachines : public testing::Test {
protected:
    RentedMachines() {
        const std::string kubeconfig = folder_.write("kubeconfig", support::kubeconfig_of(api_));
        const std::string config = folder_.write(
            "comfyd.yaml",
            "public_url: " + std::string(kPublicUrl) +
                "\n"
                "fleet: {poll_ms: 100}\n"
                "providers: {k: {kind: kubernetes, dials_in: true, kubeconfig: '" +
                kubeconfig +
                "'}}\n"
                "pools: [{name: default, size: 2, drain_max_s: 20,\n"
                "         template: {image: 'comfyui:1'}, offers: [{provider: k}]}]\n"
        );
        comfyd_ = std::make_unique<Comfyd>(
            support::ComfydOptions{.arguments = {"--no-engine", "--config", config}}
        );
        kubelet_ = std::make_unique<Kubelet>(api_, comfyd_->url(), journal());
    }

    std::string journal() const { return folder_ / "journal"; }
    std::size_t starts() const {
        const std::string text = support::read_file(journal());
        std::size_t count = 0;
        for (auto at = text.find("start"); at != std::string::npos;
             at = text.find("start", at + 1)) {
            ++count;
        }
        return count;
    }
    // By state.
    std::map<std::string, std::set<std::string>> instances() {
        std::map<std::string, std::set<std::string>> found;
        const json::value fleet = comfyd_->http().get("/admin/v1/fleet").json();
        for (const json::value& pool : fleet.at("pools").as_array()) {
            for (const json::value& instance : pool.at("instances").as_array()) {
                found[std::string(instance.at("state").as_string())].insert(
                    std::string(instance.at("id").as_string())
                );
            }
        }
        return found;
    }
    bool becomes_ready(std::size_t count) {
        return wait_until(
            [&] {
                const auto all = instances();
                return count == 0 ? all.empty()
                                  : all.size() == 1 && all.contains("ready") &&
                                        all.at("ready").size() == count;
            },
            kLong
        );
    }
    void resize(int size) {
        const json::object body{{"size", size}};
        net::Headers headers;
        headers.set("Content-Type", "application/json");
        const auto done = comfyd_->http().put(
            "/admin/v1/fleet/pools/default", json::serialize(body), std::move(headers)
        );
        EXPECT_EQ(done.status, 200) << done.body;
    }
    std::string token_of(const std::string& instance) const {
        return kubelet_->pods().at(instance).environment.at("COMFYD_WORKER_TOKEN");
    }
    std::unique_ptr<support::WsStream> call(
        std::string_view route, const std::string& instance, const std::string& token
    ) {
        net::Headers headers;
        headers.set(agent::kInstanceHeader, instance);
        headers.set(agent::kTokenHeader, token);
        headers.set(agent::kSessionHeader, "a-stranger");
        return comfyd_->http().ws(std::string(route), headers);
    }
    void expect_succeeded(const std::string& id) {
        const json::value job = comfyd_->wait_finished(id, kLong);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }

    ApiServer api_;
    support::TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Kubelet> kubelet_;
};

TEST_F(RentedMachines, CallRunJobsAndMayCallNoMoreOnceTheyAreGone) {
    ASSERT_TRUE(becomes_ready(2)) << comfyd_->log();
    std::vector<std::string> ids;
    for (int i = 0; i < 6; ++i) {
        ids.push_back(comfyd_->submit(text_to_image("job " + std::to_string(i))));
    }
    for (const std::string& id : ids) {
        expect_succeeded(id);
    }
    EXPECT_EQ(starts(), 6U);
    const auto before = instances().at("ready");
    for (const std::string& instance : before) {
        EXPECT_EQ(kubelet_->pods().at(instance).environment.at("COMFYD_GATEWAY"), kPublicUrl);
    }

    // Each token is one instance's alone.
    const std::string first = *before.begin();
    const std::string second = *before.rbegin();
    for (const std::string_view route : {agent::kControlRoute, agent::kLineRoute}) {
        EXPECT_FALSE(call(route, first, token_of(second))->connected());
        EXPECT_FALSE(call(route, second, token_of(first))->connected());
        EXPECT_FALSE(call(route, "0123456789ab", token_of(first))->connected());
        EXPECT_FALSE(call(route, first, "")->connected());
    }

    // One that goes on after its end is cut off, and let in no more.
    kubelet_->lose_nodes();
    resize(1);
    ASSERT_TRUE(becomes_ready(1)) << comfyd_->log();
    const std::string stays = *instances().at("ready").begin();
    const std::string gone = stays == first ? second : first;
    const auto lost = kubelet_->pods().at(gone).agent;
    EXPECT_TRUE(wait_until([&] { return lost->log().find("401") != std::string::npos; }))
        << lost->log();
    EXPECT_FALSE(call(agent::kControlRoute, gone, token_of(gone))->connected());
    EXPECT_FALSE(call(agent::kLineRoute, gone, token_of(gone))->connected());
    EXPECT_FALSE(call(agent::kControlRoute, stays, token_of(gone))->connected());
    expect_succeeded(comfyd_->submit(text_to_image("on the other")));
    resize(0);
    EXPECT_TRUE(becomes_ready(0)) << comfyd_->log();
    EXPECT_TRUE(api_.pods().empty());
    for (const std::string& instance : before) {
        EXPECT_THAT(comfyd_->log(), testing::Not(HasSubstr(token_of(instance))));
    }
}

TEST_F(RentedMachines, AreKnownAgainAfterARestartAndTheirPromptsGoOn) {
    ASSERT_TRUE(becomes_ready(2)) << comfyd_->log();
    const auto before = instances();
    const std::string id = comfyd_->submit(text_to_image("slow", "slow=4000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 1; }));
    comfyd_->restart();
    expect_succeeded(id);
    EXPECT_EQ(starts(), 1U) << "the prompt ran twice";
    EXPECT_EQ(instances(), before);
    EXPECT_EQ(kubelet_->pods().size(), 2U) << "others were ordered";
}

TEST_F(RentedMachines, OneThatIsToldToStopGetsNothingMore) {
    ASSERT_TRUE(becomes_ready(2)) << comfyd_->log();
    std::vector<std::string> ids;
    for (const char* text : {"one", "two"}) {
        ids.push_back(comfyd_->submit(text_to_image(text, "slow=4000")));
    }
    ASSERT_TRUE(wait_until([&] { return starts() == 2; })) << comfyd_->log();
    const auto pods = kubelet_->pods();
    AgentProcess& stops = *pods.begin()->second.agent;
    stops.process().kill(SIGTERM);
    EXPECT_TRUE(wait_until([&] {
        return comfyd_->http().get("/admin/v1/workers").body.find("drain") != std::string::npos;
    })) << comfyd_->http().get("/admin/v1/workers").body;
    ids.push_back(comfyd_->submit(text_to_image("on the other")));
    for (const std::string& id : ids) {
        expect_succeeded(id);
    }
    EXPECT_EQ(starts(), 3U);
    EXPECT_EQ(stops.process().wait(std::chrono::seconds(60)), 0);
}

TEST_F(RentedMachines, AreLetInFromTheirOrderOn) {
    resize(0);
    ASSERT_TRUE(becomes_ready(0)) << comfyd_->log();
    kubelet_.reset();  // nothing runs in what is ordered from now on
    resize(1);
    ASSERT_TRUE(wait_until([&] { return !api_.pods().empty(); }, kLong));
    const auto environment = support::variables_of(api_.pods().begin()->second);
    const std::string instance = environment.at("COMFYD_INSTANCE");
    const std::string token = environment.at("COMFYD_WORKER_TOKEN");
    ASSERT_TRUE(instances().contains("creating"));
    EXPECT_TRUE(call(agent::kControlRoute, instance, token)->connected());
    comfyd_->restart();
    const auto control = call(agent::kControlRoute, instance, token);
    EXPECT_TRUE(control->connected());
    resize(0);
    EXPECT_TRUE(control->wait_end(kLong));
    EXPECT_FALSE(call(agent::kControlRoute, instance, token)->connected());
}

}  // namespace
}  // namespace comfyd
