// Where the agent's own log goes: to its standard error, to a file that does not grow without end,
// or to both. Made before the first line is logged, destroyed after the last.
#pragma once

#include <filesystem>
#include <thread>

#include "agent/log_file.hpp"
#include "net/descriptor.hpp"

namespace comfyd::agent {

enum class LogTarget { console, file, both };

class LogOutput {
public:
    // `path`: of the file, where there is one.
    LogOutput(LogTarget target, const std::filesystem::path& path);
    ~LogOutput();  // standard error is again what it was
    LogOutput(const LogOutput&) = delete;
    LogOutput& operator=(const LogOutput&) = delete;

private:
    void copy();

    net::Descriptor console_;  // what standard error was; none: it is still
    net::Descriptor reading_;
    bool is_both_ = false;
    LogFile file_;
    std::thread thread_;
};

}  // namespace comfyd::agent
