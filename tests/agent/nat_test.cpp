// A worker in a network of its own, out of which connections go and into which none come.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "support/agent.hpp"
#include "support/comfyd.hpp"

namespace comfyd {
namespace {

constexpr const char* kKey = "app-0123456789abcdef";

// A network namespace behind a packet filter that lets nothing in but answers.
class Natted {
public:
    Natted() {
        const std::string here = name_ + "a";
        const std::string there = name_ + "b";
        is_there_ = run("ip netns add " + name_) &&
                    run("ip link add " + here + " type veth peer name " + there) &&
                    run("ip link set " + there + " netns " + name_) &&
                    run("ip addr add " + gateway() + "/30 dev " + here) &&
                    run("ip link set " + here + " up") &&
                    inside("ip addr add " + worker() + "/30 dev " + there) &&
                    inside("ip link set " + there + " up") && inside("ip link set lo up") &&
                    inside("iptables -P INPUT DROP") &&
                    inside("iptables -A INPUT -i lo -j ACCEPT") &&
                    inside("iptables -A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT");
    }
    ~Natted() {
        run("ip netns del " + name_);
        run("ip link del " + name_ + "a");
    }
    Natted(const Natted&) = delete;
    Natted& operator=(const Natted&) = delete;

    bool is_there() const { return is_there_; }
    std::string gateway() const { return network_ + "1"; }
    std::string worker() const { return network_ + "2"; }
    std::vector<std::string> runner() const { return {"ip", "netns", "exec", name_}; }
    bool inside(const std::string& command) const {
        return run("ip netns exec " + name_ + " " + command);
    }

private:
    static bool run(const std::string& command) {
        return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
    }

    std::string name_ = "cd" + std::to_string(::getpid());
    std::string network_ = "10.231." + std::to_string(::getpid() % 250) + ".";
    bool is_there_ = false;
};

TEST(AgentBehindNat, NeedsOnlyTheWayOut) {
    Natted nat;
    if (!nat.is_there()) {
        GTEST_SKIP() << "network namespaces and iptables need root";
    }
    const support::TempDir folder;
    const std::string config = folder.write(
        "comfyd.yaml",
        "workers:\n  - url: worker://home\n    token: " + std::string(support::kAgentToken) +
            "\nfleet: {poll_ms: 100}\n"
    );
    support::ComfydOptions options;
    options.listen = nat.gateway() + ":0";
    options.environment = {{"COMFYD_AUTH_KEYS", std::string("app=") + kKey}};
    options.arguments = {"--no-engine", "--config", config};
    support::Comfyd gateway(options);
    gateway.http().set_header("X-API-Key", kKey);

    support::AgentOptions behind;
    behind.runner = nat.runner();
    behind.environment = {{"COMFYD_GATEWAY", gateway.url()}, {"COMFYD_INSTANCE", "home"}};
    behind.has_port = false;
    const support::AgentProcess agent(behind);
    for (int i = 0; i < 3; ++i) {
        const std::string id = gateway.submit(support::text_to_image("nat " + std::to_string(i)));
        const json::value job = gateway.wait_finished(id);
        EXPECT_EQ(support::Comfyd::status_of(job), "succeeded")
            << json::serialize(job) << agent.log() << gateway.log();
    }
}

}  // namespace
}  // namespace comfyd
