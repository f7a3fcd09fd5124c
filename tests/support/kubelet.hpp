// What runs the Pods of an API server, a double or a real one: in each of them the real agent,
// which calls a gateway or is called. Test code only.
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
           "contexts: [{name: c, context: {cluster: k, user: u, namespace: " +
           std::string(fleet::test::kNamespace) + "}}]\n";
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

// Runs the agent of each Pod, and ends it with its Pod unless it is told that nobody does. `Api`
// has pods(), those that shall run; set_status(name, status) of one that runs; forget(name) of one
// that has ended.
template <class Api>
class KubeletOf {
public:
    struct Pod {
        std::string name;
        std::map<std::string, std::string> environment;
        std::shared_ptr<AgentProcess> agent;
    };

    KubeletOf(Api& api, std::string gateway, std::string journal)
        : api_(api), gateway_(std::move(gateway)), journal_(std::move(journal)), thread_([this] {
              while (!is_ending_) {
                  look();
                  std::this_thread::sleep_for(std::chrono::milliseconds(10));
              }
          }) {}
    ~KubeletOf() {
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
        std::set<std::string> instances;
        for (const auto& [name, pod] : api_.pods()) {
            const auto environment = variables_of(pod);
            const std::string& instance = environment.at("COMFYD_INSTANCE");
            instances.insert(instance);
            if (!pods().contains(instance)) {
                const std::string address = "127.0.1." + std::to_string(++addresses_);
                auto agent = run(environment, address);
                const std::lock_guard lock(mutex_);
                pods_[instance] = {name, environment, std::move(agent)};
                api_.set_status(name, {{"phase", "Running"}, {"podIP", address}});
            }
        }
        for (const auto& [instance, pod] : pods()) {
            if (!instances.contains(instance) && ended_.insert(instance).second) {
                end(instance);
                api_.forget(pod.name);
            }
        }
    }
    void end(const std::string& instance) {
        const std::lock_guard lock(mutex_);
        if (!has_lost_nodes_) {
            pods_[instance].agent.reset();
        }
    }
    // One that nobody told whom to call is called, at its Pod's address.
    std::shared_ptr<AgentProcess> run(
        std::map<std::string, std::string> environment, const std::string& address
    ) const {
        support::AgentOptions options;
        options.token = environment.at("COMFYD_WORKER_TOKEN");
        options.has_port = !environment.contains("COMFYD_GATEWAY");
        if (options.has_port) {
            options.address = address + ":" + environment.at("SERVER_PORT");
        } else {
            environment["COMFYD_GATEWAY"] = gateway_;  // what its public name stands for
        }
        options.environment = std::move(environment);
        options.double_arguments = "--journal " + journal_;
        return std::make_shared<AgentProcess>(std::move(options));
    }

    Api& api_;
    const std::string gateway_;
    const std::string journal_;
    mutable std::mutex mutex_;
    std::map<std::string, Pod> pods_;
    std::set<std::string> ended_;
    int addresses_ = 0;
    std::atomic<bool> has_lost_nodes_ = false;
    std::atomic<bool> is_ending_ = false;
    std::thread thread_;
};
using Kubelet = KubeletOf<fleet::test::ApiServer>;

}  // namespace comfyd::support
