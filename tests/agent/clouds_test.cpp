// A pool of rented machines that are called at an address of their own (RunPod's and Novita's
// doubles): the real binary orders them, the real agent runs on them, and the cloud fails in the
// ways that clouds fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "support/agent.hpp"
#include "support/cloud_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd {
namespace {

using support::AgentProcess;
using support::CloudDouble;
using support::CloudFaults;
using support::Comfyd;
using support::text_to_image;
using support::wait_until;
using testing::HasSubstr;

constexpr std::chrono::seconds kLong{120};

template <class Double>
std::unique_ptr<CloudDouble> make_double() {
    return std::make_unique<Double>();
}

// RunPod's orders have a map, Novita's a list.
std::map<std::string, std::string> variables_of(const json::object& order) {
    std::map<std::string, std::string> variables;
    if (const json::value* map = json::find(order, "env")) {
        for (const auto& [name, value] : map->as_object()) {
            variables[name] = std::string(value.as_string());
        }
        return variables;
    }
    for (const json::value& variable : order.at("envs").as_array()) {
        variables[std::string(variable.at("key").as_string())] =
            std::string(variable.at("value").as_string());
    }
    return variables;
}

struct CloudKind {
    const char* name;
    std::unique_ptr<CloudDouble> (*make)();

    friend void PrintTo(const CloudKind& shown, std::ostream* out) { *out << shown.name; }
};

class CloudMachines : public testing::TestWithParam<CloudKind> {
protected:
    static constexpr const char* kOffers =
        "[{provider: c, gpus: [RTX 4090]}, {provider: c, gpus: [RTX 4090, L40S]}]";

    void start(const std::string& pool = "", const std::string& offers = kOffers) {
        const std::string key(CloudDouble::kKey);
        const std::string config = folder_.write(
            "comfyd.yaml",
            "fleet: {poll_ms: 100}\n"
            "providers:\n"
            "  c: {kind: " +
                std::string(GetParam().name) + ", key: " + key + ", url: '" + cloud_->url() +
                "', agent_url: 'http://" + address_ +
                "'}\n"
                "pools:\n"
                "  - name: default\n"
                "    size: 1\n" +
                pool +
                "    template: {image: 'comfyui:1'}\n"
                "    offers: " +
                offers + "\n"
        );
        comfyd_ = std::make_unique<Comfyd>(
            support::ComfydOptions{.arguments = {"--no-engine", "--config", config}}
        );
    }
    // The machine that was ordered last begins to run; its name.
    std::string run_it(int orders) {
        EXPECT_TRUE(wait_until(
            [&] { return cloud_->asked("create") >= orders && !cloud_->machines().empty(); }, kLong
        )) << comfyd_->log();
        const json::object order = *cloud_->last_create();
        support::AgentOptions options;
        options.environment = variables_of(order);
        options.token = options.environment.at("COMFYD_WORKER_TOKEN");
        options.double_arguments = "--journal " + (folder_ / "journal");
        options.address = address_;
        agent_.reset();
        agent_ = std::make_unique<AgentProcess>(std::move(options));
        return std::string(order.at("name").as_string());
    }
    void expect_succeeded(const std::string& id) {
        const json::value job = comfyd_->wait_finished(id, kLong);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }
    std::int64_t retries_left(const std::string& id) {
        const json::value task = comfyd_->http().get("/api/v1/tasks/" + id).json();
        return task.at("max_retries").as_int64() - task.at("retry_count").as_int64();
    }
    std::string events() const {
        return comfyd_->http().get("/admin/v1/fleet/events?limit=1000").body;
    }
    bool wait_event(const std::string& words) {
        return wait_until([&] { return events().find(words) != std::string::npos; }, kLong);
    }
    void expect_nothing_left() {
        comfyd_->http().put("/admin/v1/fleet/pools/default", R"({"size": 0})");
        EXPECT_TRUE(wait_until([&] { return cloud_->machines().empty(); }, kLong))
            << comfyd_->log();
        EXPECT_THAT(cloud_->wrong(), testing::IsEmpty());
        EXPECT_THAT(comfyd_->log(), testing::Not(HasSubstr(CloudDouble::kKey)));
        EXPECT_THAT(events(), testing::Not(HasSubstr(CloudDouble::kKey)));
    }
    static std::string free_address() {
        boost::asio::io_context io;
        const boost::asio::ip::tcp::acceptor probe(
            io, {boost::asio::ip::make_address("127.0.0.1"), 0}
        );
        return "127.0.0.1:" + std::to_string(probe.local_endpoint().port());
    }

    const std::string address_ = free_address();
    std::unique_ptr<CloudDouble> cloud_ = GetParam().make();
    support::TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<AgentProcess> agent_;
};

INSTANTIATE_TEST_SUITE_P(
    Of,
    CloudMachines,
    testing::Values(
        CloudKind{"runpod", make_double<support::RunPodDouble>},
        CloudKind{"novita", make_double<support::NovitaDouble>}
    ),
    [](const auto& kind) { return std::string(kind.param.name); }
);

// What was listed is gone meanwhile, the next is made though the answer is 500, and lists are pages
// of HTML at first.
TEST_P(CloudMachines, OneIsHadThroughAllThatFails) {
    cloud_->set({.pages = 1, .errors_after = 1, .too_many = 1, .out_of_stock = 1});
    start();
    const std::string name = run_it(2);
    ASSERT_TRUE(wait_event("\"ready\"")) << comfyd_->log() << events();
    EXPECT_EQ(cloud_->machines(), std::vector{name});
    EXPECT_EQ(cloud_->asked("create"), 2) << "the unclear one is not asked for again";
    EXPECT_THAT(events(), HasSubstr("\"out_of_stock\""));
    EXPECT_THAT(events(), HasSubstr("\"unclear\""));
    EXPECT_THAT(events(), HasSubstr("\"adopted\""));
    expect_succeeded(comfyd_->submit(text_to_image("one")));
    expect_nothing_left();
}

TEST_P(CloudMachines, OneThatNeverStartsIsGivenUpAndAnotherIsHad) {
    cloud_->set({.starts_never = true});
    start("    start_max_s: 40\n");
    ASSERT_TRUE(wait_event("not ready within 40 s")) << comfyd_->log() << events();
    cloud_->set({});
    run_it(2);
    expect_succeeded(comfyd_->submit(text_to_image("one")));
    EXPECT_EQ(cloud_->machines().size(), 1U);
    expect_nothing_left();
}

TEST_P(CloudMachines, AnEmptyBalanceIsToldAndNothingIsOrdered) {
    cloud_->set({.is_broke = true});
    start();
    const std::string id = comfyd_->submit(text_to_image("one"));
    ASSERT_TRUE(wait_event("\"provider_closed\"")) << comfyd_->log() << events();
    EXPECT_EQ(cloud_->asked("create"), 1) << "the other offer is of the same account";
    EXPECT_EQ(Comfyd::status_of(comfyd_->job(id)), "queued");
    expect_nothing_left();
}

class SpotMachines : public CloudMachines {};

INSTANTIATE_TEST_SUITE_P(
    Of,
    SpotMachines,
    testing::Values(CloudKind{"novita", make_double<support::NovitaDouble>}),
    [](const auto& kind) { return std::string(kind.param.name); }
);

// It is drained at the notice; what does not end in time goes back to its place and runs elsewhere.
TEST_P(SpotMachines, OneThatIsTakenBackIsReplacedAndItsJobLosesNoAttempt) {
    start(
        "    drain_max_s: 1\n",
        "[{provider: c, gpus: [RTX 4090], market: spot, max_usd_per_hour: 1}]"
    );
    const std::string first = run_it(1);
    ASSERT_TRUE(wait_event("\"ready\"")) << comfyd_->log() << events();
    const std::string id = comfyd_->submit(text_to_image("one", "slow=10000"));
    const std::int64_t before = retries_left(id);
    ASSERT_TRUE(wait_until([&] { return Comfyd::status_of(comfyd_->job(id)) == "running"; }));
    cloud_->change("i1001", [](json::object& instance) { instance["spot_status"] = "notified"; });
    ASSERT_TRUE(wait_event("its provider takes it back")) << comfyd_->log() << events();
    ASSERT_TRUE(wait_until(
        [&] {
            const auto all = cloud_->machines();
            return all.size() == 1 && all.front() != first;
        },
        kLong
    )) << comfyd_->log()
       << events();
    EXPECT_EQ(Comfyd::status_of(comfyd_->job(id)), "queued");
    run_it(2);
    expect_succeeded(id);
    EXPECT_EQ(retries_left(id), before);
    expect_nothing_left();
}

}  // namespace
}  // namespace comfyd
