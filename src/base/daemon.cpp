#include "base/daemon.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/spawn_plan.hpp"

namespace comfyd {

namespace fs = std::filesystem;

Result<ProcessMark> start_daemon(const ChildCommand& command, const DaemonPlace& place) {
    SpawnPlan plan(SpawnPlan::Leads::session);
    posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    // Appending is what lets cut_log() take away what was written.
    posix_spawn_file_actions_addopen(
        &plan.actions, STDOUT_FILENO, place.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600
    );
    posix_spawn_file_actions_adddup2(&plan.actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&plan.actions, place.folder.c_str());
    pid_t pid = 0;
    if (const int failed = plan.spawn(command, pid); failed != 0) {
        return fail(
            Code::worker_unavailable,
            "the process '" + command.name + "' cannot be started: " + std::strerror(failed)
        );
    }
    // We are its parent: its number is its own until we forget it, even where it has ended.
    return ProcessMark{pid, process_start(pid)};
}

void forget_daemon(pid_t pid) {
    while (::waitpid(pid, nullptr, WNOHANG) < 0 && errno == EINTR) {
    }
}

void cut_log(const fs::path& log, std::uint64_t bytes_max) {
    std::error_code error;
    const auto bytes = fs::file_size(log, error);
    if (error || bytes <= bytes_max || !fs::is_regular_file(fs::symlink_status(log, error))) {
        return;
    }
    fs::copy_file(log, log.string() + ".1", fs::copy_options::overwrite_existing, error);
    fs::resize_file(log, 0, error);
}

}  // namespace comfyd
