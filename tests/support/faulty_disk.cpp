// A disk that fails on demand, for a process that loads this library first (LD_PRELOAD). The number
// of COMFYD_TEST_DISK (support/preloaded_number.hpp) says how: 1 is full, 2 does not sync. What
// goes to pipes, sockets and the log is let through.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <cerrno>

#include "support/preloaded_number.hpp"

namespace {

constexpr std::int64_t kFull = 1;
constexpr std::int64_t kDoesNotSync = 2;

bool is(std::int64_t fault) {
    static const volatile std::int64_t* const number =
        comfyd::support::preloaded_number("COMFYD_TEST_DISK");
    return number != nullptr && *number == fault;
}

bool has_no_room(int file) {
    struct stat about{};
    return is(kFull) && file != STDERR_FILENO && ::fstat(file, &about) == 0 &&
           S_ISREG(about.st_mode);
}

int fail(int why) {
    errno = why;
    return -1;
}

template <class Function>
Function real(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t count) {
    static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
    return has_no_room(file) ? fail(ENOSPC) : next(file, data, count);
}

ssize_t writev(int file, const iovec* parts, int count) {
    static const auto next = real<ssize_t (*)(int, const iovec*, int)>("writev");
    return has_no_room(file) ? fail(ENOSPC) : next(file, parts, count);
}

ssize_t pwrite64(int file, const void* data, size_t count, off64_t at) {
    static const auto next = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
    return has_no_room(file) ? fail(ENOSPC) : next(file, data, count, at);
}

ssize_t pwrite(int file, const void* data, size_t count, off_t at) {
    return pwrite64(file, data, count, at);
}

int fsync(int file) {
    static const auto next = real<int (*)(int)>("fsync");
    return is(kDoesNotSync) ? fail(EIO) : next(file);
}

int fdatasync(int file) {
    static const auto next = real<int (*)(int)>("fdatasync");
    return is(kDoesNotSync) ? fail(EIO) : next(file);
}
}
