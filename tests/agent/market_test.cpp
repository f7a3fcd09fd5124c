// A pool of machines of a market (Vast's double): the real binary bids for them, what runs on them
// is the real agent, and others bid more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/agent.hpp"
#include "support/cloud_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd {
namespace {

using support::AgentProcess;
using support::Comfyd;
using support::text_to_image;
using support::wait_until;

constexpr std::chrono::seconds kLong{120};

class MarketMachines : public testing::Test {
protected:
    MarketMachines() {
        const std::string config = folder_.write(
            "comfyd.yaml",
            "public_url: https://comfyd.example.com\n"
            "fleet: {poll_ms: 100}\n"
            "providers: {v: {kind: vast, key: " +
                std::string(support::CloudDouble::kKey) + ", url: '" + cloud_.url() +
                "'}}\n"
                "pools:\n"
                "  - name: default\n"
                "    size: 1\n"
                "    template: {image: 'comfyui:1'}\n"
                "    offers: [{provider: v, gpus: [RTX 4090], market: spot, max_usd_per_hour: 1}]\n"
        );
        comfyd_ = std::make_unique<Comfyd>(
            support::ComfydOptions{.arguments = {"--no-engine", "--config", config}}
        );
    }

    // The machine that was ordered last begins to run.
    std::string run_it(int orders) {
        EXPECT_TRUE(wait_until(
            [&] { return cloud_.asked("create") == orders && !cloud_.machines().empty(); }, kLong
        )) << comfyd_->log();
        support::AgentOptions options;
        const json::object order = *cloud_.last_create();
        for (const auto& [name, value] : order.at("env").as_object()) {
            options.environment[name] = std::string(value.as_string());
        }
        EXPECT_EQ(options.environment.at("COMFYD_GATEWAY"), "https://comfyd.example.com");
        options.environment["COMFYD_GATEWAY"] = comfyd_->url();
        options.token = options.environment.at("COMFYD_WORKER_TOKEN");
        options.double_arguments = "--journal " + (folder_ / "journal");
        options.has_port = false;
        agents_.push_back(std::make_unique<AgentProcess>(std::move(options)));
        return std::string(order.at("label").as_string());
    }
    void expect_succeeded(const std::string& id) {
        const json::value job = comfyd_->wait_finished(id, kLong);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }
    std::string state_of(const std::string& machine) {
        const json::value fleet = comfyd_->http().get("/admin/v1/fleet").json();
        for (const json::value& instance : fleet.at("pools").at(0).at("instances").as_array()) {
            if ("comfyd-main-" + std::string(instance.at("id").as_string()) == machine) {
                return std::string(instance.at("state").as_string());
            }
        }
        return "";
    }

    support::VastDouble cloud_;
    support::TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
    std::vector<std::unique_ptr<AgentProcess>> agents_;
};

TEST_F(MarketMachines, OneThatIsOutbidIsReplacedAndItsJobRunsElsewhere) {
    const std::string first = run_it(1);
    ASSERT_TRUE(wait_until([&] { return state_of(first) == "ready"; }, kLong)) << comfyd_->log();
    expect_succeeded(comfyd_->submit(text_to_image("one")));
    const std::string id = comfyd_->submit(text_to_image("two", "slow=10000"));
    ASSERT_TRUE(wait_until([&] { return Comfyd::status_of(comfyd_->job(id)) == "running"; }));

    cloud_.change("9001", [](json::object& contract) {
        for (const char* member : {"intended_status", "cur_state", "next_state"}) {
            contract[member] = "stopped";
        }
        contract["actual_status"] = "exited";
    });
    agents_.clear();  // as its machine stops
    const std::string second = run_it(2);
    EXPECT_NE(second, first);
    EXPECT_TRUE(wait_until([&] { return cloud_.machines() == std::vector{second}; }, kLong))
        << "the stopped one costs, too";
    expect_succeeded(id);
    EXPECT_EQ(comfyd_->http().get("/admin/v1/fleet").json_at("/pools/0/failed_starts"), 0);
    EXPECT_THAT(cloud_.wrong(), testing::IsEmpty());
}

}  // namespace
}  // namespace comfyd
