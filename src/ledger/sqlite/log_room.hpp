// Room in SQLite's log file before it is needed.
//
// Overwriting a file waits for the disk once, appending to it also for the file system's own log:
// 0.2 instead of 0.4 ms a commit on our machines. So the log is made longer with zeros while nobody
// waits. SQLite reads a log up to the first frame that does not carry its mark, and zeros do not.
// On the writer's thread, which alone writes the log.
#pragma once

#include <cstdint>
#include <filesystem>

namespace comfyd::ledger::sqlite {

class LogRoom {
public:
    // `bytes_max`: as far as the log is made longer.
    LogRoom(std::filesystem::path log, std::uint64_t bytes_max)
        : log_(std::move(log)), bytes_max_(bytes_max) {}

    // When little is left beyond the first `used` bytes. A file that cannot be made longer stays as
    // it is: then commits append.
    void make(std::uint64_t used);

private:
    std::filesystem::path log_;
    std::uint64_t bytes_max_;
    std::uint64_t has_ = 0;  // the length at least
};

}  // namespace comfyd::ledger::sqlite
