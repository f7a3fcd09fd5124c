// Against a real dockerd and a real podman, each with a network of its own.
#include "fleet/providers/docker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/json.hpp"
#include "fleet/providers/docker_container.hpp"
#include "net/test_support.hpp"
#include "support/container_engine.hpp"

namespace comfyd::fleet {
namespace {

using support::ContainerEngine;
using support::wait_until;
using testing::HasSubstr;
using State = Machine::State;
using Kind = ContainerEngine::Kind;

class Containers : public testing::TestWithParam<Kind> {
protected:
    void SetUp() override {
        options_.socket = engine().socket();
        options_.stop_grace = std::chrono::seconds(20);
        // Without a bridge's plugins podman has the computer's network only.
        options_.network = GetParam() == Kind::podman ? "host" : "";
        open();
    }
    void TearDown() override {
        if (!provider_) {
            return;
        }
        for (const std::string fleet : {"f", "f-g"}) {
            const auto left = loop_.run(provider_->list(fleet));
            for (const Machine& machine : left ? *left : std::vector<Machine>()) {
                EXPECT_TRUE(loop_.run(provider_->remove(machine.id)));
            }
        }
        close();
    }

    ContainerEngine& engine() { return ContainerEngine::shared(GetParam()); }
    void open() {
        auto made = make_docker(loop_.executor(), options_, clock_);
        ASSERT_TRUE(made) << made.error().message;
        provider_ = std::move(*made);
    }
    void close() {
        loop_.run(provider_->end());
        std::promise<void> done;
        boost::asio::post(loop_.executor(), [&] {
            provider_.reset();
            done.set_value();
        });
        done.get_future().get();
    }
    static MachineOrder order(const std::string& instance, const std::string& fleet = "f") {
        MachineOrder made{
            .name = "comfyd-" + fleet + "-" + instance,
            .fleet = fleet,
            .instance = instance,
            .pool = "p"
        };
        made.made_from.image = ContainerEngine::kImage;
        made.made_from.gpus = 0;
        made.secrets["COMFYD_WORKER_TOKEN"] = "secret-token";
        return made;
    }
    Result<std::string> create(MachineOrder wanted) {
        return loop_.run(provider_->create(std::move(wanted)));
    }
    std::vector<Machine> list(const std::string& fleet = "f") {
        auto machines = loop_.run(provider_->list(fleet));
        EXPECT_TRUE(machines) << machines.error().message;
        return machines.value_or(std::vector<Machine>());
    }
    Machine find(const std::string& name) {
        for (const Machine& machine : list()) {
            if (machine.name == name) {
                return machine;
            }
        }
        Machine none;
        none.state = State::gone;
        return none;
    }
    bool becomes(const std::string& name, State state) {
        return wait_until([&] { return find(name).state == state; });
    }
    json::object inspect(const std::string& name) {
        return json::parse_object(engine().api("GET", "/containers/" + name + "/json"))
            .value_or(json::object());
    }

    net::test::Loop loop_;
    SystemClock clock_;
    DockerOptions options_;
    std::unique_ptr<MachineProvider> provider_;
};

INSTANTIATE_TEST_SUITE_P(
    Real,
    Containers,
    testing::Values(Kind::docker, Kind::podman),
    [](const auto& kind) { return kind.param == Kind::docker ? "docker" : "podman"; }
);

TEST_P(Containers, LivesFromCreateToRemove) {
    auto wanted = order("1");
    wanted.made_from.memory_bytes_max = 64ULL * 1024 * 1024;
    wanted.made_from.cpus_max = 0.5;
    wanted.made_from.environment = {{"A", "b c"}};
    const auto id = create(wanted);
    ASSERT_TRUE(id) << id.error().message;
    Machine machine = find(wanted.name);
    EXPECT_EQ(machine.state, State::running);
    EXPECT_EQ(machine.id, *id);
    ASSERT_TRUE(machine.url);
    EXPECT_TRUE(machine.made_at);
    EXPECT_TRUE(wait_until([&] {
        return engine().get(*machine.url + "/healthz") == R"({"status":"ok"})";
    })) << *machine.url;

    const json::object about = inspect(wanted.name);
    const json::object& labels = about.at("Config").at("Labels").as_object();
    EXPECT_EQ(labels.at("comfyd.fleet"), "f");
    EXPECT_EQ(labels.at("comfyd.instance"), "1");
    EXPECT_EQ(labels.at("comfyd.pool"), "p");
    const json::object& host = about.at("HostConfig").as_object();
    EXPECT_EQ(host.at("Memory"), 64 * 1024 * 1024);
    EXPECT_EQ(host.at("NanoCpus"), 500'000'000);
    const std::string environment = json::serialize(about.at("Config").at("Env"));
    EXPECT_THAT(environment, HasSubstr("\"A=b c\""));
    EXPECT_THAT(environment, HasSubstr("COMFYD_WORKER_TOKEN=secret-token"));

    EXPECT_TRUE(wait_until([&] {
        const auto log = loop_.run(provider_->logs(*id, 10));
        return log && log->find("agent of 1\n") != std::string::npos &&
               log->find("a warning\n") != std::string::npos;
    }));
    EXPECT_TRUE(loop_.run(provider_->stop(*id)));
    EXPECT_TRUE(loop_.run(provider_->stop(*id))) << "it is so already";
    EXPECT_EQ(find(wanted.name).state, State::stopped);
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_TRUE(loop_.run(provider_->start(*id)));
    EXPECT_EQ(find(wanted.name).state, State::running);
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    EXPECT_TRUE(loop_.run(provider_->remove(*id))) << "it is gone already";
    EXPECT_TRUE(list().empty());
    EXPECT_EQ(loop_.run(provider_->logs(*id, 10)).error().code, Code::not_found);
    EXPECT_EQ(loop_.run(provider_->start(*id)).error().code, Code::not_found);
}

TEST_P(Containers, OfOtherFleetsNoneIsSeen) {
    ASSERT_TRUE(create(order("1")));
    ASSERT_TRUE(create(order("1", "f-g")));
    engine().api(
        "POST",
        "/containers/create?name=stranger",
        R"({"Image":"localhost/agent:1","Labels":{"comfyd":"f"}})"
    );
    ASSERT_EQ(list("f").size(), 1u);
    EXPECT_EQ(list("f")[0].name, "comfyd-f-1");
    ASSERT_EQ(list("f-g").size(), 1u);
    EXPECT_EQ(list("f-g")[0].name, "comfyd-f-g-1");
    EXPECT_TRUE(list("g").empty());
    engine().api("DELETE", "/containers/stranger?force=1");
}

TEST_P(Containers, ANameThatIsTakenIsAdoptedIfItIsOurs) {
    const auto first = create(order("1"));
    ASSERT_TRUE(first);
    const std::string born = json::serialize(inspect("comfyd-f-1").at("Id"));
    EXPECT_EQ(create(order("1")), *first);
    EXPECT_EQ(json::serialize(inspect("comfyd-f-1").at("Id")), born) << "the same container";
    EXPECT_EQ(list().size(), 1u);
    // One that was made, by somebody who ended before he could start it.
    engine().api(
        "POST",
        "/containers/create?name=comfyd-f-2",
        R"({"Image":"localhost/agent:1","HostConfig":{"NetworkMode":"host"},"Env":["SERVER_HOST=127.0.0.1","SERVER_PORT=18399"],
            "Labels":{"comfyd.fleet":"f","comfyd.instance":"2","comfyd.pool":"p","comfyd.port":"18399"}})"
    );
    EXPECT_EQ(find("comfyd-f-2").state, State::made);
    EXPECT_THAT(find("comfyd-f-2").reason, HasSubstr("never started"));
    EXPECT_TRUE(create(order("2")));
    EXPECT_EQ(find("comfyd-f-2").state, State::running);
    // And a stranger's.
    engine().api("POST", "/containers/create?name=comfyd-f-3", R"({"Image":"localhost/agent:1"})");
    EXPECT_EQ(create(order("3")).error().code, Code::conflict);
    EXPECT_EQ(inspect("comfyd-f-3").count("Id"), 1u) << "and it stays";
    engine().api("DELETE", "/containers/comfyd-f-3?force=1");
}

TEST_P(Containers, WithoutAGpuRuntimeTheReasonIsClearAndNothingStays) {
    auto wanted = order("1");
    wanted.made_from.gpus = 1;
    const auto id = create(wanted);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, Code::invalid_argument);
    EXPECT_THAT(id.error().message, HasSubstr("can give no GPU"));
    EXPECT_THAT(id.error().message, HasSubstr("NVIDIA Container Toolkit"));
    EXPECT_TRUE(list().empty());
}

TEST_P(Containers, WhatCannotStartIsRemoved) {
    auto wanted = order("1");
    wanted.made_from.image = ContainerEngine::kBrokenImage;
    const auto id = create(wanted);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, Code::invalid_argument);
    EXPECT_THAT(id.error().message, HasSubstr("cannot be started"));
    EXPECT_TRUE(list().empty());
}

TEST_P(Containers, HowOneEndedIsTold) {
    auto crashes = order("1");
    crashes.made_from.command = {"crash", "7"};
    ASSERT_TRUE(create(crashes));
    ASSERT_TRUE(becomes(crashes.name, State::failed));
    EXPECT_THAT(find(crashes.name).reason, HasSubstr("exit code 7"));
    auto eats = order("2");
    eats.made_from.command = {"eat"};
    eats.made_from.memory_bytes_max = 32ULL * 1024 * 1024;
    ASSERT_TRUE(create(eats));
    ASSERT_TRUE(becomes(eats.name, State::failed));
    EXPECT_THAT(find(eats.name).reason, HasSubstr("more memory than it may have"));
    auto ends = order("3");
    ends.made_from.command = {"crash", "0"};
    ASSERT_TRUE(create(ends));
    EXPECT_TRUE(becomes(ends.name, State::stopped));
}

TEST_P(Containers, AnImageThatIsNotThere) {
    auto wanted = order("1");
    wanted.made_from.image = "127.0.0.1:5000/no-such:1";
    const auto id = create(wanted);
    ASSERT_TRUE(id) << "it is pulled in the background";
    ASSERT_TRUE(becomes(*id, State::failed));
    EXPECT_THAT(find(*id).reason, HasSubstr("127.0.0.1:5000/no-such:1"));
    EXPECT_EQ(find(*id).state, State::failed) << "until it is removed";
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    EXPECT_TRUE(list().empty());
    close();
    options_.pull = DockerOptions::Pull::never;
    open();
    EXPECT_THAT(create(wanted).error().message, HasSubstr("may not be pulled"));
    wanted.made_from.image = "no image";
    EXPECT_EQ(create(wanted).error().code, Code::invalid_argument);
    EXPECT_TRUE(list().empty());
}

TEST_P(Containers, ChangesAreHeardOf) {
    const auto changes = std::make_shared<std::atomic<int>>(0);  // heard of until the provider ends
    boost::asio::post(loop_.executor(), [this, changes] {
        provider_->on_change([changes] { ++*changes; });
    });
    ASSERT_TRUE(create(order("1")));
    ASSERT_TRUE(wait_until([&] { return *changes > 1; }));  // the first is our own
    // What nobody of ours does.
    const auto hears = [&](const std::string& method, const std::string& path) {
        const int before = *changes;
        engine().api(method, path);
        return wait_until([&] { return *changes > before; });
    };
    EXPECT_TRUE(hears("POST", "/containers/comfyd-f-1/kill"));
    EXPECT_EQ(find("comfyd-f-1").state, State::failed);
    EXPECT_TRUE(hears("DELETE", "/containers/comfyd-f-1?force=1"));
}

TEST_P(Containers, NoTwoGetTheSamePortOrGpu) {
    close();
    options_.network = "host";
    options_.port_first = 18'301;
    options_.port_last = 18'303;
    open();
    std::vector<std::future<Result<std::string>>> made;
    for (int i = 0; i < 4; ++i) {
        made.push_back(loop_.start(provider_->create(order(std::to_string(i)))));
    }
    int good = 0;
    for (auto& one : made) {
        const auto id = net::test::get(one);
        good += id ? 1 : 0;
        EXPECT_TRUE(id || id.error().code == Code::out_of_stock) << id.error().message;
    }
    EXPECT_EQ(good, 3);
    std::set<std::string> urls;
    for (const Machine& machine : list()) {
        urls.insert(machine.url.value_or(""));
    }
    EXPECT_EQ(urls.size(), 3u);
    for (const std::string& url : urls) {
        EXPECT_TRUE(wait_until([&] { return !engine().get(url + "/healthz").empty(); })) << url;
    }
}

TEST_P(Containers, OffersKnowHowManyThereAreRoomFor) {
    close();
    options_.machines_max = 2;
    options_.gpu_kind = "NVIDIA H200";
    options_.usd_per_hour = 2.5;
    open();
    OfferWish wish{.provider = "docker", .gpus = {"H200"}};
    auto offers = loop_.run(provider_->offers(wish));
    ASSERT_TRUE(offers);
    ASSERT_EQ(offers->size(), 1u);
    EXPECT_EQ((*offers)[0].available, 2);
    EXPECT_EQ((*offers)[0].usd_per_hour, 2.5);
    ASSERT_TRUE(create(order("1")));
    EXPECT_EQ((*loop_.run(provider_->offers(wish)))[0].available, 1);
    ASSERT_TRUE(create(order("2")));
    EXPECT_EQ((*loop_.run(provider_->offers(wish)))[0].available, 0);
    EXPECT_EQ(create(order("3")).error().code, Code::out_of_stock);
    wish.usd_per_hour_max = 2;
    EXPECT_TRUE(loop_.run(provider_->offers(wish))->empty());
    EXPECT_TRUE(loop_.run(provider_->offers({.provider = "", .gpus = {"H100"}}))->empty());
    EXPECT_TRUE(
        loop_.run(provider_->offers({.provider = "", .gpus = {}, .market = Market::spot}))->empty()
    );
}

class DockerContainers : public Containers {};
INSTANTIATE_TEST_SUITE_P(Real, DockerContainers, testing::Values(Kind::docker), [](const auto&) {
    return "docker";
});

TEST_P(DockerContainers, PullsAndTellsHowFarItIs) {
    const auto changes = std::make_shared<std::atomic<int>>(0);  // heard of until the provider ends
    boost::asio::post(loop_.executor(), [this, changes] {
        provider_->on_change([changes] { ++*changes; });
    });
    auto wanted = order("1");
    wanted.made_from.image = ContainerEngine::kRemoteImage;
    const auto id = create(wanted);
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(create(wanted), *id) << "it is on its way";
    Machine machine = find(wanted.name);
    EXPECT_EQ(machine.state, State::pulling);
    int percent = 0;
    EXPECT_TRUE(wait_until([&] {
        machine = find(wanted.name);
        EXPECT_GE(machine.percent.value_or(100), percent);
        percent = machine.percent.value_or(percent);
        EXPECT_NE(machine.state, State::failed) << machine.reason;
        return machine.state == State::running || machine.state == State::failed;
    }));
    EXPECT_GT(*changes, 2);
    EXPECT_TRUE(loop_.run(provider_->remove(*id)));
    engine().api("DELETE", std::string("/images/") + ContainerEngine::kRemoteImage + "?force=1");
}

TEST_P(DockerContainers, RemovedWhileItIsPulled) {
    auto wanted = order("1");
    wanted.made_from.image = ContainerEngine::kRemoteImage;
    ASSERT_TRUE(create(wanted));
    EXPECT_TRUE(loop_.run(provider_->remove(wanted.name)));
    EXPECT_TRUE(list().empty());
    // Whoever makes it has ended when it can be made anew.
    EXPECT_TRUE(wait_until([&] { return create(wanted).has_value(); }));
    EXPECT_TRUE(becomes(wanted.name, State::running));
    EXPECT_EQ(list().size(), 1u);
    EXPECT_TRUE(loop_.run(provider_->remove(wanted.name)));
    engine().api("DELETE", std::string("/images/") + ContainerEngine::kRemoteImage + "?force=1");
}

TEST_P(DockerContainers, EndsInTheMiddleOfAPull) {
    auto wanted = order("1");
    wanted.made_from.image = ContainerEngine::kRemoteImage;
    ASSERT_TRUE(create(wanted));
    close();  // whoever is told to end does not wait for it
    open();
    EXPECT_TRUE(wait_until([&] {
        const auto left = list();
        return left.empty() || left[0].state != State::creating;
    })) << "nobody makes it any more";
    engine().api("DELETE", std::string("/images/") + ContainerEngine::kRemoteImage + "?force=1");
}

TEST_P(DockerContainers, InANetworkTheyAreFoundByName) {
    close();
    options_.network = "comfy-net";
    open();
    engine().api("POST", "/networks/create", R"({"Name":"comfy-net"})");
    ASSERT_TRUE(create(order("1")));
    EXPECT_EQ(find("comfyd-f-1").url, "http://comfyd-f-1:18188");
    // From outside of it there is no name, but an address.
    const json::object about = inspect("comfyd-f-1");
    const std::string address(
        about.at("NetworkSettings").at("Networks").at("comfy-net").at("IPAddress").as_string()
    );
    EXPECT_TRUE(wait_until([&] {
        return !engine().get("http://" + address + ":18188/healthz").empty();
    }));
    EXPECT_TRUE(loop_.run(provider_->remove("comfyd-f-1")));
    engine().api("DELETE", "/networks/comfy-net");
    // A network that there is not.
    const auto lost = create(order("2"));
    ASSERT_FALSE(lost);
    EXPECT_THAT(lost.error().message, HasSubstr("comfy-net"));
    EXPECT_TRUE(list().empty());
}

// Its containers live on, and the next dockerd ends them before it answers.
TEST_P(DockerContainers, AnEngineThatDiesComesBack) {
    const auto changes = std::make_shared<std::atomic<int>>(0);  // heard of until the provider ends
    boost::asio::post(loop_.executor(), [this, changes] {
        provider_->on_change([changes] { ++*changes; });
    });
    ASSERT_TRUE(create(order("1")));
    const std::string born = json::serialize(inspect("comfyd-f-1").at("Id"));
    engine().crash();
    // Nobody takes that for an empty list. Whether it was asked to end or killed depends on how
    // much time it got.
    EXPECT_TRUE(wait_until([&] {
        const auto listed = loop_.run(provider_->list("f"));
        if (!listed) {
            EXPECT_EQ(listed.error().code, Code::connection_failed);
            EXPECT_THAT(listed.error().message, HasSubstr("is Docker or podman running"));
            return false;
        }
        EXPECT_EQ(listed->size(), 1u);
        const State state = listed->empty() ? State::gone : listed->front().state;
        return state == State::stopped || state == State::failed;
    }));
    EXPECT_EQ(json::serialize(inspect("comfyd-f-1").at("Id")), born);
    EXPECT_TRUE(loop_.run(provider_->start("comfyd-f-1")));
    EXPECT_EQ(find("comfyd-f-1").state, State::running);
    const int before = *changes;
    engine().api("POST", "/containers/comfyd-f-1/kill");
    EXPECT_TRUE(wait_until([&] { return *changes > before; })) << "events are heard again";
}

}  // namespace
}  // namespace comfyd::fleet
