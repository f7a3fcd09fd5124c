// A wall clock that is wrong by COMFYD_TEST_CLOCK_SHIFT_S seconds, for a process that loads this
// library first (LD_PRELOAD), and by the number of COMFYD_TEST_CLOCK
// (support/preloaded_number.hpp), so that it jumps. Clocks that only count on are left as they are.
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include "support/preloaded_number.hpp"

namespace {

time_t shift() {
    static const time_t seconds = [] {
        const char* given = std::getenv("COMFYD_TEST_CLOCK_SHIFT_S");
        return given != nullptr ? static_cast<time_t>(std::atol(given)) : 0;
    }();
    static const volatile std::int64_t* const jump =
        comfyd::support::preloaded_number("COMFYD_TEST_CLOCK");
    return seconds + (jump != nullptr ? static_cast<time_t>(*jump) : 0);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const long status = ::syscall(SYS_clock_gettime, clock, time);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += shift();
    }
    return static_cast<int>(status);
}

int gettimeofday(timeval* time, void*) noexcept {
    timespec now{};
    const int status = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1'000;
    return status;
}

time_t time(time_t* time) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (time != nullptr) {
        *time = now.tv_sec;
    }
    return now.tv_sec;
}
}
