// A number that a test changes while a program runs which loads one of our libraries first
// (LD_PRELOAD): the beginning of a file that an environment variable names. For those libraries:
// it needs nothing but the system.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace comfyd::support {

// Null where the variable is not set.
inline const volatile std::int64_t* preloaded_number(const char* variable) {
    const char* path = std::getenv(variable);
    const int file = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return nullptr;
    }
    void* at = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    return at != MAP_FAILED ? static_cast<const volatile std::int64_t*>(at) : nullptr;
}

}  // namespace comfyd::support
