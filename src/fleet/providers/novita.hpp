// Instances of Novita AI, by version 2 of its API (/gpus/v2), for which Novita publishes no
// document: docs/providers.md says what is known of it and from whom. An instance's HTTP port is
// public at https://{instance}-{port}.{region}.gpu-instance.novita.ai: the agent's alone is opened,
// and only where it asks for a token.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct NovitaOptions {
    std::string name = "novita";  // the provider's, in the configuration
    std::string key;
    std::string url = "https://api.novita.ai/gpus/v2";
    std::string agent_url = "https://{id}-{port}.{region}.gpu-instance.novita.ai";
    std::string product{};               // id of the only one to rent; empty: any
    std::vector<std::string> regions{};  // where an offer names none; empty: Novita chooses
    std::string registry{};              // id of a login that Novita keeps, for private images
    std::string volume{};                // id of a network volume, and where it is mounted
    std::string volume_path{};
    std::string cuda_min{};  // "12.8"
    bool can_park = false;   // whether a stopped instance keeps its disk is not certain
    int disk_gb = 60;        // of machines whose template says nothing
    std::string ca_file{};
};

// Code::config_invalid says which of them is wrong.
Result<> check_novita(const NovitaOptions& options);

// `clock` outlives it.
Result<std::unique_ptr<MachineProvider>> make_novita(
    Executor executor, NovitaOptions options, const Clock& clock
);

}  // namespace comfyd::fleet
