// A control group for a program and all that it starts, whatever they do to get away: a folder in
// the kernel's own tree (version 2), below the group of this process. Only where the system lets
// us: as root, or where systemd delegates a part of its tree. Blocks shortly: for a pool. Any
// thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace comfyd {

// Where the tree is shown; tests have another.
inline constexpr const char* kCgroupTree = "/sys/fs/cgroup";

// Makes a group of the name and moves the process there. Empty: it cannot be had.
std::filesystem::path put_into_cgroup(
    const std::string& name, pid_t process, const std::filesystem::path& tree = kCgroupTree
);
// Who is in it now. None where there is no such group.
std::vector<pid_t> processes_in(const std::filesystem::path& cgroup);
// One that nobody is in.
void remove_cgroup(const std::filesystem::path& cgroup);

}  // namespace comfyd
