#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/confinement.hpp"
#include "base/landlock.hpp"
#include "base/restrict_program.hpp"
#include "base/sandbox.hpp"
#include "base/system_paths.hpp"

namespace comfyd {
namespace {

// Processes of the same user outside count, too, where it has no users of its own.
constexpr std::uint64_t kOthersOfUser = 4'096;

int limit_where_asked(int resource, std::uint64_t most) {
    return most == 0 ? 0 : limit_resource(resource, most);
}

int restrict_program_files(const SandboxOrder& order) {
    using enum LandlockRules::Right;
    LandlockRules rules;
    for (const char* path : kSystemFolders) {
        rules.allow(path, read_and_run);
    }
    for (const char* path : kSystemSettings) {
        rules.allow(path, read);
    }
    for (const char* path : kSystemSources) {
        rules.allow(path, read);
    }
    rules.allow(kNowhere, device);
    rules.allow("/dev/tty", device);
    rules.allow("/proc", read);
    // Where it is the system's, what others share is there, too.
    if (order.level == SandboxLevel::strict || order.needs.gpu) {
        rules.allow("/dev/shm", write);
    }
    if (order.needs.gpu) {
        for (const auto& path : gpu_devices()) {
            rules.allow(path, write);
        }
        rules.allow("/proc/self", write);  // CUDA names its threads there
    }
    for (const auto& path : order.needs.readable) {
        rules.allow(path, read_and_run);
    }
    for (const auto& path : order.needs.writable) {
        rules.allow(path, write_and_run);
    }
    return rules.enforce();
}

Error failed(const char* what, int error) {
    return Error(
        Code::worker_unavailable,
        "a sandbox cannot be entered: " + std::string(what) + ": " + std::strerror(error)
    );
}

}  // namespace

Error enter_sandbox(const SandboxOrder& order) {
    const SandboxNeeds& needs = order.needs;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != order.parent) {
        return Error(Code::shutting_down, "the process that started this one has ended");
    }
    const std::uint64_t others = order.level == SandboxLevel::strict ? 0 : kOthersOfUser;
    if (const int error = limit_resource(RLIMIT_CORE, 0)) {
        return failed("no memory dumps", error);
    }
    if (const int error = limit_resource(RLIMIT_NOFILE, needs.open_files_max)) {
        return failed("limit of open files", error);
    }
    if (const int error = limit_where_asked(
            RLIMIT_NPROC, needs.processes_max == 0 ? 0 : needs.processes_max + others
        )) {
        return failed("limit of processes", error);
    }
    if (const int error = limit_where_asked(RLIMIT_CPU, needs.cpu_seconds_max)) {
        return failed("limit of computing time", error);
    }
    if (const int error = limit_where_asked(RLIMIT_DATA, needs.memory_bytes_max)) {
        return failed("limit of memory", error);
    }
    if (const int error = drop_privileges(FilesOfOthers::no)) {
        return failed("no privileges", error);
    }
    if (order.level != SandboxLevel::minimal) {
        if (const int error = restrict_program_files(order)) {
            return failed("limit to own files", error);
        }
        if (const int error = restrict_program(needs.network)) {
            return failed("limit of system calls", error);
        }
    }
    std::vector<char*> words;
    for (const std::string& word : order.command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    ::execvp(words.front(), words.data());
    return failed(order.command.front().c_str(), errno);
}

}  // namespace comfyd
