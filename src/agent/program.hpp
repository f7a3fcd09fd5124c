// A running program of somebody else's, in a process group of its own, with what it prints handed
// on. What it started ends with it: when the program is gone, its whole group is.
//
// One executor: call it only there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/child_process.hpp"
#include "base/task.hpp"

namespace comfyd::agent {

class Program {
public:
    using Output = std::function<void(std::string_view bytes)>;

    // `folder`: where it begins; empty: where we are. Code::worker_unavailable.
    static Result<std::unique_ptr<Program>> start(
        Executor executor,
        const ChildCommand& command,
        const std::filesystem::path& folder,
        Output output
    );
    ~Program();  // REQUIRES: wait() returned, or was never called. Kills what is left
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    pid_t pid() const;
    // To the whole group; nothing where it has ended.
    void signal(int number);
    // Returns when it and its group are gone, with how it ended: "status 1", "signal 9 (Killed)";
    // empty: the calling task was cancelled. Once.
    Task<std::string> wait();

private:
    class Impl;
    explicit Program(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// What a process and all that it started hold of the machine's memory. 0: it is not there.
std::uint64_t memory_of(pid_t pid);
// When it started, as the kernel counts it (field 22 of /proc/PID/stat). 0: it is not there.
std::uint64_t started_at(pid_t pid);

}  // namespace comfyd::agent
