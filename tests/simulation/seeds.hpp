// Which schedules are run, and which one it was that ended the process.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

namespace comfyd::simulation {

// Of the environment.
inline std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* text = ::getenv(name);
    return text == nullptr ? otherwise : std::stoull(text);
}

inline std::atomic<std::uint64_t> seed_now = 0;

// A failed assertion, or a loop without an end (SIGALRM): which schedule it was is told all the
// same.
inline void tell_seed_when_it_ends_badly() {
    const auto tell_seed = [](int signal) {
        char text[100];
        const int size = std::snprintf(
            text,
            sizeof text,
            "\nCOMFYD_SIMULATE_SEED=%llu\n",
            static_cast<unsigned long long>(seed_now)
        );
        static_cast<void>(!::write(STDERR_FILENO, text, static_cast<std::size_t>(size)));
        ::signal(signal, SIG_DFL);
        ::raise(signal == SIGALRM ? SIGABRT : signal);
    };
    ::signal(SIGABRT, tell_seed);
    ::signal(SIGALRM, tell_seed);
    ::signal(SIGSEGV, tell_seed);
}

}  // namespace comfyd::simulation
