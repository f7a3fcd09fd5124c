#include "comfy/server/machine_memory.hpp"

#include <sys/sysinfo.h>

#include <fstream>
#include <string>

namespace comfyd::comfy::server {

MachineMemory read_machine_memory() {
    MachineMemory memory;
    struct sysinfo info{};
    if (::sysinfo(&info) == 0) {
        memory.total = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
        memory.available = static_cast<std::uint64_t>(info.freeram) * info.mem_unit;
    }
    std::ifstream in("/proc/meminfo");
    std::string name;
    std::uint64_t kilobytes = 0;
    for (std::string unit; in >> name >> kilobytes && std::getline(in, unit);) {
        if (name == "MemAvailable:") {
            memory.available = kilobytes * 1'024;
            break;
        }
    }
    return memory;
}

}  // namespace comfyd::comfy::server
