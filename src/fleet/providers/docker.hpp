// Machines that are containers of this computer, by Docker's API: Docker itself, or podman. The
// images have `comfyd worker` as their entrypoint, or are told by the template's command.
//
// A container's name is its machine's id: Docker lets no two have the same, so that a create whose
// answer was lost finds it again. Its labels say whose it is: comfyd.fleet, comfyd.instance,
// comfyd.pool.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct DockerOptions {
    enum class Pull { missing, always, never };

    std::string name = "docker";  // the provider's, in the configuration
    std::string socket = "/var/run/docker.sock";

    // How agents are reached. Empty: each has a port of this computer's loopback that Docker
    // chooses. "host": they use the computer's own network, each a port of the range below. Else
    // the name of a Docker network that comfyd itself is in: agents are found there by name.
    std::string network{};
    int port_first = 18'200;
    int port_last = 18'299;

    // The GPUs to give out, by UUID or index. Empty: a container asks for so many, and Docker
    // gives all of them the first ones.
    std::vector<std::string> gpus{};
    int per_gpu = 1;           // machines that share one
    std::string gpu_driver{};  // "cdi" where Docker has its devices by CDI; podman always has
    int machines_max = 0;      // 0: no limit but that of the GPUs

    // What offers tell of them.
    std::string gpu_kind{};
    std::uint64_t gpu_memory_bytes = 0;
    std::string region{};
    std::optional<double> usd_per_hour{};

    Pull pull = Pull::missing;
    std::vector<std::string> volumes{};  // "/models:/models:ro"
    std::uint64_t shm_bytes = 0;         // 0: as the engine has it
    std::chrono::seconds pull_timeout{3600};
    std::chrono::seconds stop_grace{30};
};

// Code::config_invalid says which of them is wrong.
Result<> check_docker(const DockerOptions& options);

// `clock` outlives it.
Result<std::unique_ptr<MachineProvider>> make_docker(
    Executor executor, DockerOptions options, const Clock& clock
);

}  // namespace comfyd::fleet
