#include "base/confinement.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/landlock.hpp"

namespace comfyd {
namespace {

// Sanitizers reserve terabytes of addresses.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kCountsMemory = false;
#else
constexpr bool kCountsMemory = true;
#endif
#else
constexpr bool kCountsMemory = true;
#endif

}  // namespace

int limit_resource(int resource, std::uint64_t most) {
    rlimit now{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) {
        return errno;
    }
    const rlimit lower{std::min(most, now.rlim_max), std::min(most, now.rlim_max)};
    return ::setrlimit(static_cast<__rlimit_resource>(resource), &lower) == 0 ? 0 : errno;
}

Result<std::vector<std::string>> confine(const Confinement& limits) {
    std::vector<std::string> missing;
    const auto note = [&missing](const char* what, int error) {
        if (error != 0) {
            missing.push_back(std::string(what) + ": " + std::strerror(error));
        }
    };
    if (limits.parent != 0) {
        note("end with the parent", ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 ? 0 : errno);
        if (::getppid() != limits.parent) {
            return fail(Code::shutting_down, "the process that started this one has ended");
        }
    }
    // The data folder of a server that root starts may lie in a user's home.
    const bool has_own_files = limits.has_walls && landlock_version() > 0;
    note(
        "no privileges", drop_privileges(has_own_files ? FilesOfOthers::as_root : FilesOfOthers::no)
    );
    note("no memory dumps", limit_resource(RLIMIT_CORE, 0));
    note("limit of open files", limit_resource(RLIMIT_NOFILE, limits.open_files_max));
    if (limits.cpu_seconds_max != 0) {
        note("limit of computing time", limit_resource(RLIMIT_CPU, limits.cpu_seconds_max));
    }
    if (limits.niceness != 0) {
        errno = 0;  // -1 is a niceness too
        note("stand back", ::nice(limits.niceness) == -1 ? errno : 0);
    }
    if (limits.memory_bytes_max != 0 && kCountsMemory) {
        note("limit of memory", limit_resource(RLIMIT_DATA, limits.memory_bytes_max));
    }
    if (!limits.has_walls) {
        return missing;
    }
    note("limit to own files", restrict_files(limits.folders, limits.reads_system));
    note(
        "limit of system calls",
        limits.only_computes ? restrict_to_computing() : restrict_system_calls()
    );
    return missing;
}

}  // namespace comfyd
