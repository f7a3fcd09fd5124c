// Pods of RunPod, by version 2 of its REST API. It has no spot machines and takes one kind of GPU
// in a create, so the caller tries offers in turn. A pod's HTTP port is public at
// https://{pod}-{port}.proxy.runpod.net: the agent's alone is opened, and only where it asks for a
// token.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct RunPodOptions {
    std::string name = "runpod";  // the provider's, in the configuration
    std::string key;
    std::string url = "https://api.runpod.io/v2";
    std::string agent_url = "https://{id}-{port}.proxy.runpod.net";
    std::vector<std::string> clouds{"SECURE"};  // SECURE, COMMUNITY, in order
    std::vector<std::string> data_centers{};    // empty: any
    std::string registry{};  // id of a login that RunPod keeps, for private images
    std::string volume{};    // id of a network volume, and where it is mounted
    std::string volume_path{};
    std::string cuda_min{};  // "12.8"
    std::string ca_file{};
};

// Code::config_invalid says which of them is wrong.
Result<> check_runpod(const RunPodOptions& options);

// `clock` outlives it.
Result<std::unique_ptr<MachineProvider>> make_runpod(
    Executor executor, RunPodOptions options, const Clock& clock
);

}  // namespace comfyd::fleet
