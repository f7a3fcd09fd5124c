// A child process of a test. Its stdout and stderr are collected by a thread of the parent, and it
// dies with the parent. All members from one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/wait.hpp"

namespace comfyd::support {

struct ProcessOptions {
    std::vector<std::string> arguments{};              // the program first
    std::map<std::string, std::string> environment{};  // added to the parent's
    std::string directory{};                           // empty: the parent's
    std::string stderr_file{};  // appended to; empty: collected with stdout's lines
};

class Process {
public:
    // Throws std::runtime_error when the program cannot be started.
    explicit Process(ProcessOptions options);
    Process(std::vector<std::string> arguments)
        : Process(ProcessOptions{.arguments = std::move(arguments)}) {}
    ~Process();  // SIGKILL and reap, when it still runs
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    pid_t pid() const { return pid_; }
    bool running();
    // The rest of the next line of stdout that begins with `prefix`, after those found before;
    // nullopt when the process ends or the deadline passes first.
    std::optional<std::string> wait_for_line(
        std::string_view prefix, std::chrono::milliseconds deadline = kDeadline
    );
    void kill(int signal);
    // The exit status, or 128 + the signal that ended it; nullopt when it still runs at the
    // deadline.
    std::optional<int> wait(std::chrono::milliseconds deadline = kDeadline);
    // SIGTERM, then SIGKILL after the deadline. Returns as wait().
    int stop(std::chrono::milliseconds deadline = kDeadline);

    // All that it wrote so far.
    std::string output() const;
    std::string errors() const;

private:
    void collect(int out, int err);
    bool reap(bool block);

    pid_t pid_ = -1;
    std::optional<int> status_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::string output_;        // guarded by mutex_
    std::string errors_;        // guarded by mutex_
    bool ended_ = false;        // guarded by mutex_: both pipes are closed
    std::size_t searched_ = 0;  // how far wait_for_line() has come in output_
    std::thread collector_;
};

}  // namespace comfyd::support
