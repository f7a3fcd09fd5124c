#include "fleet/providers/docker.hpp"

#include <set>
#include <utility>

#include "fleet/providers/docker_machines.hpp"
#include "fleet/providers/foreign_words.hpp"

namespace comfyd::fleet {

Result<> check_docker(const DockerOptions& options) {
    const auto wrong = [&](std::string what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + std::move(what));
    };
    if (!options.socket.starts_with('/')) {
        return wrong("socket must be the path of Docker's unix socket");
    }
    const bool is_range = options.port_first > 0 && options.port_first <= options.port_last &&
                          options.port_last <= 65'535;
    if (!is_range) {
        return wrong("the ports must be a range within 1 … 65535");
    }
    if (options.per_gpu < 1 || options.machines_max < 0) {
        return wrong("per_gpu must be at least 1, machines_max at least 0");
    }
    if (std::set(options.gpus.begin(), options.gpus.end()).size() != options.gpus.size()) {
        return wrong("a GPU is named twice");
    }
    if (!options.gpu_driver.empty() && options.gpu_driver != "nvidia" &&
        options.gpu_driver != "cdi") {
        return wrong("gpu_driver must be nvidia or cdi");
    }
    for (const std::string& volume : options.volumes) {
        if (volume.find(":/") == std::string::npos) {
            return wrong(
                "the volume '" + presentable(volume) + "' must look like /models:/models:ro"
            );
        }
    }
    if (options.usd_per_hour.value_or(0) < 0 || options.pull_timeout.count() <= 0 ||
        options.stop_grace.count() < 0) {
        return wrong("prices and times cannot be negative");
    }
    return {};
}

Result<std::unique_ptr<MachineProvider>> make_docker(
    Executor executor, DockerOptions options, const Clock& clock
) {
    auto checked = check_docker(options);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    return std::make_unique<Docker>(executor, std::move(options), clock);
}

}  // namespace comfyd::fleet
