// Machines that are Pods of a Kubernetes cluster: bare ones, because whoever has a Deployment
// shrunk does not choose which of its Pods goes. A Pod's name is its machine's id, and unique in
// its namespace; its labels say whose it is. It cannot be stopped and started again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct KubernetesOptions {
    std::string name = "kubernetes";  // the provider's, in the configuration

    // How the API server is reached. Empty: by the account of the Pod that comfyd runs in.
    std::string kubeconfig{};  // a file, and one of its contexts
    std::string context{};     // empty: its current one
    std::string name_space{};  // empty: the account's, or the context's
    std::string account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

    // What Pods are made with.
    std::string gpu_resource = "nvidia.com/gpu";
    std::string gpu_label = "nvidia.com/gpu.product";  // of nodes, with the kind of their GPUs
    std::map<std::string, std::string> node_selector{};
    std::vector<std::string> pull_secrets{};
    std::string runtime_class{};
    std::map<std::string, std::string> claims{};  // volume claims, and where they are mounted
    std::chrono::seconds grace{60};

    // Agents cannot be called at their Pods' addresses: comfyd is outside of the cluster.
    bool dials_in = false;

    // What its offers tell: the kinds of GPUs that its nodes have, by gpu_label's values.
    std::vector<std::string> gpus{};
    std::string region{};
    std::optional<double> usd_per_hour{};
};

// Reads the account or the kubeconfig. Code::config_invalid says what is wrong. `clock` outlives
// it.
Result<std::unique_ptr<MachineProvider>> make_kubernetes(
    Executor executor, KubernetesOptions options, const Clock& clock
);

}  // namespace comfyd::fleet
