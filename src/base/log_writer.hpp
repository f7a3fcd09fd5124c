// Lines on their way to a file: a thread of its own writes them, so that a reader who does not read
// stops nobody. What waits is bounded; lines beyond that are dropped and counted, and the log says
// how many once there is room again. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/time.hpp"

namespace comfyd::log {

class LogWriter {
public:
    // Makes the line that tells of dropped ones.
    using TellDropped = std::function<std::string(std::uint64_t count)>;

    // `file` stays open as long as the writer lives.
    LogWriter(int file, std::size_t waiting_bytes_max, TellDropped tell_dropped);
    ~LogWriter();  // flushes, but not for longer than a second
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    void write(std::string line);  // without its line break
    // Waits until everything is written. False when nobody reads for that long.
    bool flush(Millis patience);
    std::uint64_t dropped() const;  // since the beginning

private:
    void run();
    bool write_whole(std::string_view text);

    const int file_;
    const std::size_t waiting_bytes_max_;
    const TellDropped tell_dropped_;
    mutable Mutex mutex_;
    Condition changed_;
    std::deque<std::string> waiting_ COMFYD_GUARDED_BY(mutex_);
    std::size_t waiting_bytes_ COMFYD_GUARDED_BY(mutex_
    ) = 0;  // with the line that is being written
    std::uint64_t dropped_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::uint64_t dropped_told_ COMFYD_GUARDED_BY(mutex_) = 0;
    bool stopping_ COMFYD_GUARDED_BY(mutex_) = false;
    std::thread thread_;
};

}  // namespace comfyd::log
