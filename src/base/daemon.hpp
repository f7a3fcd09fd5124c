// A program that we start and that outlives us: in a session of its own, with its output in a file
// and none of our open files. Whoever comes after us finds it by its mark (base/processes.hpp).
// Blocks shortly: for a pool. Any thread.
#pragma once

#include <filesystem>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/processes.hpp"

namespace comfyd {

struct DaemonPlace {
    std::filesystem::path folder;  // in which it begins
    std::filesystem::path log;     // what it prints is added there
};

// The program's path is absolute. Code::worker_unavailable: it cannot be started.
Result<ProcessMark> start_daemon(const ChildCommand& command, const DaemonPlace& place);

// Lets the system forget one of them that has ended while we are still its parent.
void forget_daemon(pid_t pid);

// A file that grows over `bytes_max` goes on from nothing, and what it had becomes "FILE.1";
// whoever writes it need not know.
void cut_log(const std::filesystem::path& log, std::uint64_t bytes_max);

}  // namespace comfyd
