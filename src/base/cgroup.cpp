#include "base/cgroup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

namespace comfyd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMembers = "cgroup.procs";

// The group of this process; empty: the tree is none of version 2.
fs::path own_cgroup(const fs::path& tree) {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        constexpr std::string_view kVersion2 = "0::/";
        if (line.starts_with(kVersion2)) {
            const fs::path group = tree / line.substr(kVersion2.size());
            std::error_code error;
            return fs::exists(group / "cgroup.type", error) ||
                           fs::exists(group / "cgroup.controllers", error)
                       ? group
                       : fs::path();
        }
    }
    return {};
}

}  // namespace

fs::path put_into_cgroup(const std::string& name, pid_t process, const fs::path& tree) {
    const fs::path own = own_cgroup(tree);
    if (own.empty()) {
        return {};
    }
    fs::path group = own / name;
    std::error_code error;
    if (!fs::create_directory(group, error) && error) {
        return {};
    }
    std::ofstream members(group / kMembers);
    members << process << std::flush;
    if (!members) {
        remove_cgroup(group);
        return {};
    }
    return group;
}

std::vector<pid_t> processes_in(const fs::path& cgroup) {
    std::vector<pid_t> pids;
    if (cgroup.empty()) {
        return pids;
    }
    std::ifstream file(cgroup / kMembers);
    for (pid_t pid = 0; file >> pid;) {
        pids.push_back(pid);
    }
    return pids;
}

void remove_cgroup(const fs::path& cgroup) {
    if (!cgroup.empty()) {
        ::rmdir(cgroup.c_str());
    }
}

}  // namespace comfyd
