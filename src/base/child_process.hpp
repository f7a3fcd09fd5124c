// Another program that we have started. Its output comes to our log, it inherits neither our
// environment nor our open files, and it does not outlive this object.
//
// One executor: call it only there.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/task.hpp"

namespace comfyd {

struct ChildCommand {
    std::string name;                        // in the log
    std::string program;                     // path
    std::vector<std::string> arguments{};    // without the program's own name
    std::vector<std::string> environment{};  // "NAME=value"
};

class ChildProcess {
public:
    // Code::worker_unavailable: it cannot be started.
    static Result<std::unique_ptr<ChildProcess>> start(
        Executor executor, const ChildCommand& command
    );
    ~ChildProcess();  // kills it where it still runs
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    pid_t pid() const;
    // Does nothing where it has ended.
    void signal(int number);
    // Returns when it has ended, with how: "status 0", "signal 9 (Killed)"; empty: the calling task
    // was cancelled. Only one may wait.
    Task<std::string> wait();

private:
    class Impl;
    explicit ChildProcess(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd
