#include "media/helper_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/spawn_plan.hpp"

namespace comfyd::media {
namespace {

std::string how_ended(int status) {
    if (WIFSIGNALED(status)) {
        return "signal " + std::to_string(WTERMSIG(status));
    }
    return "status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(const ChildCommand& command) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail(
            Code::worker_unavailable,
            "no socket for a process: " + std::string(std::strerror(errno))
        );
    }
    Descriptor ours(ends[0]);
    const Descriptor theirs(ends[1]);
    SpawnPlan plan;
    posix_spawn_file_actions_adddup2(&plan.actions, theirs.number(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&plan.actions, STDERR_FILENO, STDOUT_FILENO);
    pid_t pid = 0;
    if (const int error = plan.spawn(command, pid); error != 0) {
        return fail(
            Code::worker_unavailable, command.name + " cannot be started: " + std::strerror(error)
        );
    }
    return std::unique_ptr<HelperProcess>(new HelperProcess(pid, std::move(ours)));
}

HelperProcess::~HelperProcess() {
    end();
}

int HelperProcess::end() {
    if (pid_ == 0) {
        return 0;
    }
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
}

bool HelperProcess::has_ended() const {
    pollfd watched{socket_.number(), POLLIN, 0};
    return pid_ == 0 || ::poll(&watched, 1, 0) != 0;  // it says nothing of its own accord
}

Result<Answer> HelperProcess::ask(const Order& order, int file, const GoesOn& goes_on) {
    auto sent = send_order(socket_.number(), json::serialize(order.to_json()), file, goes_on);
    auto answer = sent ? receive_answer(socket_.number(), goes_on) : fail(std::move(sent.error()));
    if (!answer) {
        const int status = end();
        if (answer.error().code == Code::worker_lost) {
            answer.error().message += " (" + how_ended(status) + ")";
        }
    }
    return answer;
}

}  // namespace comfyd::media
