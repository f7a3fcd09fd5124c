// What runs the Pods of an API server that is a double: in each of them the real agent, which calls
// a gateway. Test code only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "fleet/providers/kubernetes_test_support.hpp"
#include "support/agent.hpp"

namespace comfyd::support {

inline std::string kubeconfig_of(const fleet::test::ApiServer& api) {
    return "current-context: c\n"
           "clusters: [{name: k, cluster: {server: '" +
           api.url() +
           "'}}]\n"
           "users: [{name: u, user: {token: token-1}}]\n"
           "contexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n";
}

// What its agent is told.
inline std::map<std::string, std::string> variables_of(const json::object& pod) {
    std::map<std::string, std::string> variables;
    const json::value& container = pod.at("spec").at("containers").as_array().at(0);
    for (const json::value& variable : container.at("env").as_array()) {
        variables[std::string(variable.at("name").as_string())] =
            std::string(variable.at("value").as_string());
    }
    return variables;
}

// Runs the agent of each Pod, and ends it with its Pod unless it is told that nobody does.
class Kubelet {
public:
    struct Pod {
        std::map<std::string, std::string> environment;
        std::shared_ptr<AgentProcess> agent;
    };

    Kubelet(fleet::test::ApiServer& api, std::string gateway, std::string journal)
        : api_(api), gateway_(std::move(gateway)), journal_(std::move(journal)), thread_([this] {
              while (!is_ending_) {
                  look();
                  std::this_thread::sleep_for(std::chrono::milliseconds(10));
              }
          }) {}
    ~Kubelet() {
        is_ending_ = true;
        thread_.join();
    }

    // All that there ever were, by instance.
    std::map<std::string, Pod> pods() const {
        const std::lock_guard lock(mutex_);
        return pods_;
    }
    // Pods that are deleted go on running: their node is out of reach.
    void lose_nodes() { has_lost_nodes_ = true; }

private:
    void look() {
        const auto there = api_.pods();
        std::set<std::string> instances;
        for (const auto& [name, pod] : there) {
            const auto environment = variables_of(pod);
            const std::string& instance = environment.at("COMFYD_INSTANCE");
            instances.insert(instance);
            if (!pods().contains(instance)) {
                auto agent = run(environment);
                const std::lock_guard lock(mutex_);
                pods_[instance] = {environment, std::move(agent)};
                api_.set_status(name, {{"phase", "Running"}, {"podIP", "10.1.2.3"}});
            }
        }
        for (const auto& [instance, pod] : pods()) {
            if (!instances.contains(instance) && !has_lost_nodes_) {
                const std::lock_guard lock(mutex_);
                pods_[instance].agent.reset();
            }
        }
    }
    std::shared_ptr<AgentProcess> run(std::map<std::string, std::string> environment) const {
        support::AgentOptions options;
        options.token = environment.at("COMFYD_WORKER_TOKEN");
        environment["COMFYD_GATEWAY"] = gateway_;  // what its public name stands for
        options.environment = std::move(environment);
        options.double_arguments = "--journal " + journal_;
        options.has_port = false;
        return std::make_shared<AgentProcess>(std::move(options));
    }

    fleet::test::ApiServer& api_;
    const std::string gateway_;
    const std::string journal_;
    mutable std::mutex mutex_;
    std::map<std::string, Pod> pods_;
    std::atomic<bool> has_lost_nodes_ = false;
    std::atomic<bool> is_ending_ = false;
    std::thread thread_;
};

}  // namespace comfyd::support
