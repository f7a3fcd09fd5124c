// How programs that are not ours are confined: in one of three levels, by a command that puts them
// there. What this system can do is found out once; whoever starts children says what they need.
// Values; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/error.hpp"

namespace comfyd {

enum class SandboxLevel {
    minimal,  // no new privileges, limits, an environment and files of its own
    basic,    // and by Landlock and seccomp: no other files, few system calls
    strict,   // and by bubblewrap: a system of its own, in which nothing else is to be seen
};
std::string_view to_string(SandboxLevel level);

// What there is on this system.
struct SandboxSupport {
    int landlock = 0;  // version of its interface; 0: none
    bool seccomp = false;
    std::string bubblewrap{};  // the program, where it works
    std::string problem{};     // why it does not

    SandboxLevel best() const;
    // What is not there for the level, in words; empty where all is.
    std::vector<std::string> missing(SandboxLevel level) const;
    std::string missing_text(SandboxLevel level) const;
};
// Blocks: for a start. Tries bubblewrap by running it, where that is wanted.
SandboxSupport look_at_sandbox_support(bool tries_bubblewrap = true);

enum class SandboxNetwork {
    none,   // nothing
    serve,  // it answers connections, and makes none
    all,
};
std::string_view to_string(SandboxNetwork network);

// What a program needs of the system beside its libraries.
struct SandboxNeeds {
    std::vector<std::filesystem::path> readable{};
    std::vector<std::filesystem::path> writable{};  // folders
    std::filesystem::path scratch{};  // its own /tmp and home (base/scratch_folder.hpp)
    SandboxNetwork network = SandboxNetwork::none;
    bool gpu = false;
    // 0: no limit. Memory is what it may have of its own: addresses that are only reserved, as CUDA
    // does by the terabyte, do not count.
    std::uint64_t memory_bytes_max = 0;
    std::uint64_t cpu_seconds_max = 0;
    std::uint64_t open_files_max = 65'536;
    std::uint64_t processes_max = 1'024;  // with threads; not of root's
};

// The command that runs `command` so confined; it ends with this process. `program` is this program
// itself, which confines the child from within (`comfyd sandbox enter`). The child's environment is
// that of `command`, and where its scratch folder is. Code::invalid_argument: a path is not there,
// or the level is not to be had.
Result<ChildCommand> sandboxed(
    ChildCommand command,
    const SandboxNeeds& needs,
    SandboxLevel level,
    const SandboxSupport& support
);

// The same for children that confine themselves from within, as the engine does: bubblewrap alone.
// `bubblewrap`: the program; all paths are absolute.
ChildCommand in_bubblewrap(
    ChildCommand command, const SandboxNeeds& needs, const std::string& bubblewrap
);
// The parent that a process sees in there.
inline constexpr int kBubblewrapParent = 1;

// The path of this program, where /proc/self/exe is another's.
std::filesystem::path own_program();

// What the child is told to be confined by, from within.
struct SandboxOrder {
    int parent = 0;
    SandboxLevel level = SandboxLevel::strict;
    SandboxNeeds needs{};
    std::vector<std::string> command{};  // the program first
};
// Becomes the program: returns only where that fails, with what does. Before any thread.
Error enter_sandbox(const SandboxOrder& order);

// Devices and files of GPUs, as far as they are there.
std::vector<std::filesystem::path> gpu_devices();

}  // namespace comfyd
