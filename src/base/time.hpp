// Wall-clock time in milliseconds, as stored and as shown, and the clock that parts are handed so
// that tests control time.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace comfyd {

using Millis = std::chrono::milliseconds;
using Time = std::chrono::sys_time<Millis>;

class Clock {
public:
    virtual ~Clock() = default;
    virtual Time now() const = 0;
};

class SystemClock final : public Clock {
public:
    Time now() const override {
        return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
    }
};

// For tests: stands still until told otherwise. Safe to read from any thread.
class ManualClock final : public Clock {
public:
    explicit ManualClock(Time start = Time(Millis(1'700'000'000'000))) : now_(start) {}
    Time now() const override { return now_.load(); }
    void advance(Millis by) { now_.store(now_.load() + by); }

private:
    std::atomic<Time> now_;
};

// "2026-11-15T05:10:56.123Z"
std::string to_rfc3339(Time time);
std::optional<Time> parse_rfc3339(std::string_view text);
inline std::int64_t to_unix_ms(Time time) {
    return time.time_since_epoch().count();
}
inline Time from_unix_ms(std::int64_t ms) {
    return Time(Millis(ms));
}

}  // namespace comfyd
