// `comfyd serve` with a pool of Pods of a real API server. In each Pod the real agent runs, as if a
// kubelet had started it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "control_plane.hpp"
#include "support/comfyd.hpp"
#include "support/kubelet.hpp"
#include "support/kubernetes_conversation.hpp"

namespace comfyd::test {
namespace {

using support::Comfyd;
using support::text_to_image;
using support::wait_until;

constexpr std::chrono::seconds kLong{120};

class PoolOfPods : public testing::TestWithParam<bool> {
protected:
    using Kubelet = support::KubeletOf<ControlPlane>;

    PoolOfPods() {
        const bool dials_in = GetParam();
        const fleet::test::KubernetesPeer peer{
            .url = plane_.url(),
            .token = plane_.token_of("comfyd-fleet"),
            .ca_file = plane_.ca_file()
        };
        const std::string config = folder_.write(
            "comfyd.yaml",
            "public_url: https://comfyd.example.com\n"
            "fleet: {poll_ms: 100}\n"
            "providers: {k: {kind: kubernetes, grace_s: 10, dials_in: " +
                std::string(dials_in ? "true" : "false") + ", kubeconfig: '" +
                folder_.write("kubeconfig", fleet::test::kubeconfig_of(peer)) +
                "'}}\n"
                "pools: [{name: default, size: 2, drain_max_s: 20,\n"
                "         template: {image: 'comfyui:1'}, offers: [{provider: k}]}]\n"
        );
        fleet::test::PodHands cluster(
            {.url = plane_.url(), .kubelet_token = plane_.admin_token(), .ca_file = plane_.ca_file()
            }
        );
        cluster.add({{"name", "a-stranger"}});
        cluster.add({{"name", "comfyd-other-1"}, {"labels", {{"a-label", "of-others"}}}});
        comfyd_ = std::make_unique<Comfyd>(
            support::ComfydOptions{.arguments = {"--no-engine", "--config", config}}
        );
        kubelet_ = std::make_unique<Kubelet>(plane_, comfyd_->url(), folder_ / "journal");
    }

    std::set<std::string> ready() {
        std::set<std::string> found;
        const json::value fleet = comfyd_->http().get("/admin/v1/fleet").json();
        for (const json::value& pool : fleet.at("pools").as_array()) {
            for (const json::value& instance : pool.at("instances").as_array()) {
                if (instance.at("state") == "ready") {
                    found.emplace(instance.at("id").as_string());
                }
            }
        }
        return found;
    }
    bool becomes_ready(std::size_t count) {
        return wait_until([&] { return ready().size() == count; }, kLong);
    }
    void expect_succeeded(const std::string& id) {
        const json::value job = comfyd_->wait_finished(id, kLong);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }
    std::size_t starts() const {
        const std::string text = support::read_file(folder_ / "journal");
        std::size_t count = 0;
        for (auto at = text.find("start"); at != std::string::npos;
             at = text.find("start", at + 1)) {
            ++count;
        }
        return count;
    }

    ControlPlane plane_;
    support::TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Kubelet> kubelet_;
};

INSTANTIATE_TEST_SUITE_P(Agents, PoolOfPods, testing::Bool(), [](const auto& dials_in) {
    return std::string(dials_in.param ? "DialIn" : "AreCalled");
});

TEST_P(PoolOfPods, RunsJobsThroughTheEndsOfEverybody) {
    ASSERT_TRUE(becomes_ready(2)) << comfyd_->log();
    std::vector<std::string> ids;
    for (int i = 0; i < 6; ++i) {
        ids.push_back(comfyd_->submit(text_to_image("job " + std::to_string(i))));
    }
    for (const std::string& id : ids) {
        expect_succeeded(id);
    }
    const auto first = ready();

    // comfyd is killed under a prompt, and the API server is started anew.
    const std::string slow = comfyd_->submit(text_to_image("slow", "slow=4000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 7; }));
    comfyd_->restart();
    plane_.restart();
    expect_succeeded(slow);
    EXPECT_EQ(starts(), 7U) << "the prompt ran twice";
    ASSERT_TRUE(becomes_ready(2)) << comfyd_->log();
    EXPECT_EQ(ready(), first);
    EXPECT_EQ(kubelet_->pods().size(), 2U) << "others were ordered";

    // A Pod is evicted: another takes its place.
    plane_.set_status(
        kubelet_->pods().at(*first.begin()).name,
        {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "The node was low on memory."}}
    );
    ASSERT_TRUE(wait_until([&] { return kubelet_->pods().size() == 3; }, kLong)) << comfyd_->log();
    ASSERT_TRUE(becomes_ready(2)) << comfyd_->log();
    EXPECT_FALSE(ready().contains(*first.begin()));
    EXPECT_THAT(
        comfyd_->http().get("/admin/v1/fleet/events?limit=1000").body,
        testing::HasSubstr("The node was low on memory.")
    );
    expect_succeeded(comfyd_->submit(text_to_image("after")));

    comfyd_->http().put("/admin/v1/fleet/pools/default", R"({"size": 0})");
    const auto left = [&] {
        std::set<std::string> names;
        const json::value told = plane_.must(plane_.admin().get(kPods));
        for (const json::value& pod : told.at("items").as_array()) {
            names.emplace(pod.at("metadata").at("name").as_string());
        }
        return names;
    };
    const std::set<std::string> of_others{"a-stranger", "comfyd-other-1"};
    EXPECT_TRUE(wait_until([&] { return left() == of_others; }, kLong)) << comfyd_->log();
}

}  // namespace
}  // namespace comfyd::test
