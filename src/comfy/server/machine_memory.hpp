// The memory of this machine.
#pragma once

#include <cstdint>

namespace comfyd::comfy::server {

struct MachineMemory {
    std::uint64_t total = 0;
    std::uint64_t available = 0;
};

MachineMemory read_machine_memory();

}  // namespace comfyd::comfy::server
