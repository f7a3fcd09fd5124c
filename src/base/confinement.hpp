// Takes from the calling process, for good, what a program that computes for strangers does not
// need: other people's files, the network, starting programs, memory without end. What it is asked
// to compute may then break it, and only it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace comfyd {

struct Confinement {
    int parent = 0;                      // its pid; the process ends with it. 0: it does not
    std::uint64_t memory_bytes_max = 0;  // 0: no limit
    std::uint64_t cpu_seconds_max = 0;   // likewise
    int niceness = 0;                    // how far it stands back for others who want to compute
    std::uint64_t open_files_max = 1'024;
    std::vector<std::filesystem::path> folders{};  // all that it may write in; they exist
    bool reads_system = true;  // it may open the system's files; one that has all that it needs: no
    bool only_computes = false;  // all that it needs is open: it reads and answers, and no more

    bool has_walls = true;  // by Landlock and seccomp; without, limits are all that it has
};

// Before any thread is started. Returns what this kernel cannot do, in words: the process runs
// without it. Code::shutting_down: the parent has ended.
Result<std::vector<std::string>> confine(const Confinement& limits);

// The parts of it, each an errno or 0.
// One of RLIMIT_…; never raised.
int limit_resource(int resource, std::uint64_t most);
// No capabilities, now and for what it starts, and none to be had again. Root may keep the one by
// which it opens files in folders of others, where something else says which files those are.
enum class FilesOfOthers { no, as_root };
int drop_privileges(FilesOfOthers kept);
// Files outside of `folders` cannot be opened; those of the system can be read, unless it is said
// otherwise.
int restrict_files(const std::vector<std::filesystem::path>& folders, bool reads_system = true);
// No connections, no sockets but those that listen in the file system, no programs, no look into
// other processes and no signals to them.
int restrict_system_calls();
// Nothing but to read and write what is open, to have memory and threads, to know the time and to
// end: whatever else is asked of the kernel is refused, also what later kernels will have.
int restrict_to_computing();

}  // namespace comfyd
