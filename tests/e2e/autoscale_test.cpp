// A pool that is scaled, through the whole program: from nothing and back to it, by jobs alone.
#include <gmock/gmock.h>
#include <signal.h>

#include "local_comfyui_support.hpp"

namespace comfyd::support {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Autoscaled : public LocalComfyUi {
protected:
    void start_with(const std::string& scaling) {
        machines_folder_ = "machines-desk";
        const std::string file = folder_.write(
            "comfyd.yaml",
            "providers:\n"
            "  desk: {kind: process, gpus: any, per_gpu: 3, dir: " +
                (folder_ / "ComfyUI") + ", ports: " + ports() +
                "}\n"
                "pools:\n"
                "  - name: default\n"
                "    offers: [{provider: desk}]\n" +
                scaling
        );
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments = {"--no-engine", "--config", file},
            .environment = {{"PYTHONPATH", folder_ / "modules"}},
            .data = folder_ / "data",
        });
    }
    std::string submit(const std::string& text, const std::string& how = "") {
        const json::object graph = how.empty() ? text_to_image(text) : text_to_image(text, how);
        return comfyd_->submit(graph, {{"priority", 10}});
    }
    json::value get(const std::string& path) { return comfyd_->http().get(path).json(); }
    std::vector<std::string> reasons() {
        std::vector<std::string> all;
        const json::value told = get("/admin/v1/fleet/decisions?pool=default");
        for (const json::value& decision : told.at("decisions").as_array()) {
            all.emplace_back(decision.at("because").as_string());
        }
        return all;
    }
    std::vector<std::string> events() {
        std::vector<std::string> all;
        const json::value told = get("/admin/v1/fleet/events?limit=1000");
        for (const json::value& event : told.at("events").as_array()) {
            all.emplace_back(event.at("what").as_string());
        }
        return all;
    }
    // Each ComfyUI of ours and the agent that started it.
    int kill_workers() {
        int killed = 0;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
            const std::string words = read_file(entry.path() / "cmdline");
            if (words.find(journal()) == std::string::npos) {
                continue;
            }
            const std::string status = read_file(entry.path() / "status");
            const std::size_t parent = status.find("PPid:");
            if (parent != std::string::npos) {
                const int agent = std::stoi(status.substr(parent + 5));
                killed += agent > 1 && ::kill(agent, SIGKILL) == 0 ? 1 : 0;
            }
            const int comfyui = std::stoi(entry.path().filename().string());
            killed += ::kill(comfyui, SIGKILL) == 0 ? 1 : 0;
        }
        return killed;
    }
    void expect_done(const std::vector<std::string>& jobs) {
        for (const std::string& id : jobs) {
            const auto job = comfyd_->wait_finished(id, kLong);
            EXPECT_EQ(Comfyd::status_of(job), "succeeded")
                << json::serialize(job) << comfyd_->log();
        }
    }
};

TEST_F(Autoscaled, TheFirstJobStartsAMachineABurstMoreAndTheQuietStopsThem) {
    constexpr std::size_t kBurst = 30;
    start_with("    max: 3\n    idle_timeout: 4\n    up_cooldown: 1\n");
    EXPECT_TRUE(machines().empty());
    expect_done({submit("a fox", "slow=1500")});
    EXPECT_EQ(machines().size(), 1U) << "one was enough";
    EXPECT_THAT(reasons(), Contains("zero"));
    std::vector<std::string> jobs;
    for (std::size_t i = 0; i < kBurst; ++i) {
        jobs.push_back(submit("fox " + std::to_string(i), "slow=1500"));
    }
    ASSERT_TRUE(wait_until([&] { return ready() > 1; }, kLong)) << comfyd_->log();
    // From here on comfyd is killed again and again, while its machines go on.
    comfyd_->restart();
    expect_done(jobs);
    EXPECT_EQ(starts(), kBurst + 1) << "each ran once";
    EXPECT_LE(machines().size(), 3U);
    comfyd_->restart();
    EXPECT_TRUE(wait_until([&] { return machines().empty(); }, kLong)) << comfyd_->log();
    EXPECT_THAT(reasons(), Contains("idle"));
    EXPECT_THAT(events(), Contains("scaled"));
    expect_done({submit("another fox")});
    const json::value pool = get("/admin/v1/fleet").at("pools").at(0);
    EXPECT_TRUE(pool.at("scaled").as_bool());
    const auto metrics = comfyd_->http().get("/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("comfyd_pool_machines_wanted"));
    EXPECT_THAT(metrics, HasSubstr("comfyd_pool_idle_usd"));
    EXPECT_THAT(metrics, HasSubstr("comfyd_instance_start_seconds_bucket{phase=\"warming\""));
    const json::value phases = get("/admin/v1/fleet/decisions").at("now").at(0).at("start_phases");
    EXPECT_GE(
        phases.at("starting").at("p90").as_double(), phases.at("starting").at("p50").as_double()
    );
    EXPECT_EQ(get("/v2/pools/default/forecast").at("pool"), "default");
    EXPECT_EQ(comfyd_->http().get("/v2/pools/nobody/forecast").status, 404);
}

// ComfyUI and its agent both, on each machine.
TEST_F(Autoscaled, MachinesThatAreKilledInABurstAreReplacedAndNoJobIsLost) {
    constexpr std::size_t kBurst = 12;
    start_with("    max: 2\n    idle_timeout: 3\n    up_cooldown: 1\n");
    std::vector<std::string> jobs;
    for (std::size_t i = 0; i < kBurst; ++i) {
        jobs.push_back(submit("fox " + std::to_string(i), "slow=500"));
    }
    ASSERT_TRUE(wait_until([&] { return starts() > 0; }, kLong)) << comfyd_->log();
    EXPECT_GE(kill_workers(), 2) << "ComfyUI and its agent";
    expect_done(jobs);
    EXPECT_GE(starts(), kBurst);
    EXPECT_LE(machines().size(), 2U);
    EXPECT_TRUE(wait_until([&] { return machines().empty(); }, kLong)) << comfyd_->log();
}

TEST_F(Autoscaled, WithoutMoneyJobsWaitAndAreToldWhy) {
    start_with(
        "    gpu_second_usd: 0.001\n    budget: {usd_per_month: 0.0001}\n    idle_timeout: 1\n"
    );
    const std::string id = submit("a fox");
    const std::string path = "/v2/workflows/execution/" + id + "/explain";
    EXPECT_TRUE(wait_until([&] {
        return comfyd_->http().get(path).body.find("its budget is spent") != std::string::npos;
    })) << comfyd_->http().get(path).body;
    EXPECT_TRUE(wait_until([&] { return testing::Value(reasons(), Contains("budget")); }));
    EXPECT_TRUE(machines().empty());
    // An operator may do what he wants.
    ASSERT_EQ(resize(1).status, 200);
    expect_done({id});
    EXPECT_TRUE(wait_until([&] { return testing::Value(events(), Contains("budget_spent")); }));
}

TEST_F(Autoscaled, WorkOfATenantWithoutMoneyKeepsNoMachine) {
    start_with("    gpu_second_usd: 0.001\n    idle_timeout: 1\n    up_cooldown: 1\n");
    const Reply made = comfyd_->http().post_json(
        "/admin/v1/tenants", {{"name", "local"}, {"budget", {{"usd_per_month", 0.000001}}}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    const auto is_held = [&](const std::string& id) {
        const std::string told =
            comfyd_->http().get("/v2/workflows/execution/" + id + "/explain").body;
        return told.find("what its tenant may spend in a month is spent") != std::string::npos;
    };
    expect_done({submit("a fox", "slow=500")});
    // What comes before somebody has looked still runs.
    std::string id;
    int number = 0;
    ASSERT_TRUE(wait_until(
        [&] {
            id = submit("fox " + std::to_string(number++));
            const auto is_done = [&] { return Comfyd::status_of(comfyd_->job(id)) == "succeeded"; };
            return wait_until([&] { return is_held(id) || is_done(); }, kLong) && is_held(id);
        },
        kLong
    )) << comfyd_->log();
    EXPECT_TRUE(wait_until([&] { return machines().empty(); }, kLong)) << comfyd_->log();
    EXPECT_TRUE(is_held(id));
    net::ClientRequest request;
    request.method = "PATCH";
    request.url = "/admin/v1/tenants/local";
    request.body = R"({"budget": null})";
    request.headers.set("Content-Type", "application/json");
    ASSERT_EQ(comfyd_->http().send(std::move(request)).status, 200);
    expect_done({id});
    EXPECT_THAT(events(), Contains("budget_spent"));
}

TEST_F(Autoscaled, ADryRunTellsAndDoesNothing) {
    start_with("    size: 0\n    max: 3\n    dry_run: true\n");
    submit("a fox");
    ASSERT_TRUE(wait_until([&] { return testing::Value(reasons(), Contains("zero")); }));
    EXPECT_TRUE(machines().empty());
    const json::value now = get("/admin/v1/fleet/decisions").at("now").at(0);
    EXPECT_TRUE(now.at("dry_run").as_bool());
    EXPECT_EQ(now.at("machines"), 1);
    ASSERT_EQ(resize(1).status, 200);
    EXPECT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
}

}  // namespace
}  // namespace comfyd::support
