// Which GPUs and which port of the computer the next container gets. Internal to the provider
// `docker`. Pure.
#pragma once

#include <vector>

#include "fleet/providers/docker_container.hpp"

namespace comfyd::fleet {

// Code::out_of_stock: everything is given out.
Result<ContainerPlace> choose_place(
    const DockerOptions& options,
    const MachineOrder& order,
    const std::vector<ContainerSummary>& others,
    int port_before  // given out last
);
// How many more machines with so many GPUs each there is room for, of which so many may share a GPU
// (0: as the options say); -1: nobody knows.
int count_free(
    const DockerOptions& options,
    int gpus_each,
    int per_gpu,
    const std::vector<ContainerSummary>& others
);

}  // namespace comfyd::fleet
