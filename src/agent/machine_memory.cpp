#include "agent/machine_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace comfyd::agent {

std::uint64_t memory_total(const std::filesystem::path& tree) {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page = ::sysconf(_SC_PAGESIZE);
    std::uint64_t total = pages > 0 && page > 0
                              ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
                              : 0;
    for (const char* file : {"memory.max", "memory/memory.limit_in_bytes"}) {
        std::ifstream limit(tree / file);
        std::uint64_t bytes = 0;
        if (limit >> bytes && bytes > 0) {  // "max" is no number
            total = total == 0 ? bytes : std::min(total, bytes);
        }
    }
    return total;
}

}  // namespace comfyd::agent
