// Keeps one child process running: starts it again when it has ended, at once where it had run for
// a while or was ended by end_child(), else after a pause that doubles.
//
// One executor: call it only there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/child_process.hpp"
#include "base/task.hpp"

namespace comfyd {

struct SupervisorOptions {
    Millis pause_min{100};
    Millis pause_max{10'000};
    Millis steady_after{5'000};  // a child that ran so long may be started again at once
    Millis grace{1'000};         // from SIGTERM to SIGKILL
};

class Supervisor {
public:
    // `ended`: a child has ended, and not by stop().
    Supervisor(
        Executor executor,
        ChildCommand command,
        SupervisorOptions options,
        std::function<void()> ended
    );
    ~Supervisor();
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;

    void start(TaskGroup& group);
    // Kills the child; the next one follows at once.
    void end_child();
    // SIGTERM, and SIGKILL to a child that does not go. Returns when there is none any more.
    Task<> stop();

    pid_t pid() const { return child_ ? child_->pid() : 0; }  // 0: none runs now
    std::uint64_t ends() const { return ends_; }              // of children, but for stop()

private:
    Task<> run();
    Task<> run_once();
    Task<> pause();

    Executor executor_;
    const ChildCommand command_;
    const SupervisorOptions options_;
    std::function<void()> ended_;
    std::unique_ptr<ChildProcess> child_;
    std::uint64_t ends_ = 0;
    int short_lives_ = 0;  // in a row
    bool ended_by_us_ = false;
    bool stopping_ = false;
    bool running_ = false;
    Signal changed_;  // stopping_ or running_
};

}  // namespace comfyd
