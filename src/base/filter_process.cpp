#include "base/filter_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/deadline.hpp"
#include "base/spawn_plan.hpp"

namespace comfyd {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

class File {
public:
    explicit File(int number) : number_(number) {}
    ~File() { close(); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int number() const { return number_; }
    void close() {
        if (number_ >= 0) {
            ::close(number_);
            number_ = -1;
        }
    }

private:
    int number_;
};

int reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

std::string text_of(int error) {
    return std::strerror(error);
}

// One end of the conversation: the program's input goes there, its output comes from there.
class Talk {
public:
    Talk(const ChildCommand& command, int socket, std::string_view input, FilterLimits limits)
        : name_(command.name), socket_(socket), left_(input), limits_(limits) {}

    Result<std::string> run() {
        const Deadline give_up = Deadline::in(limits_.time_max);
        const std::stop_callback wake(limits_.stop, [this] { ::shutdown(socket_, SHUT_RDWR); });
        for (;;) {
            if (limits_.stop.stop_requested()) {
                return fail(Code::cancelled, name_ + " was stopped");
            }
            if (give_up.has_passed()) {
                return fail(
                    Code::execution_timeout,
                    name_ + " took longer than " + std::to_string(limits_.time_max.count()) + " ms"
                );
            }
            pollfd watched{socket_, POLLIN, 0};
            if (!left_.empty()) {
                watched.events |= POLLOUT;
            }
            if (::poll(&watched, 1, static_cast<int>(give_up.left().count())) < 0 &&
                errno != EINTR) {
                return fail(Code::worker_lost, name_ + " cannot be waited for: " + text_of(errno));
            }
            if ((watched.revents & POLLOUT) != 0) {
                write();
            }
            if ((watched.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                const bool goes_on = read();
                if (output_.size() > limits_.output_bytes_max) {
                    return fail(Code::payload_too_large, name_ + " made too much");
                }
                if (!goes_on && !limits_.stop.stop_requested()) {
                    return std::move(output_);
                }
            }
        }
    }

private:
    // A program that does not want the rest has its reasons, and tells them by how it ends.
    void write() {
        const ssize_t count = ::send(
            socket_, left_.data(), std::min(left_.size(), kPieceBytes), MSG_NOSIGNAL | MSG_DONTWAIT
        );
        if (count > 0) {
            left_.remove_prefix(static_cast<std::size_t>(count));
        } else if (count < 0 && errno != EAGAIN && errno != EINTR) {
            left_ = {};
        }
        if (left_.empty()) {
            ::shutdown(socket_, SHUT_WR);
        }
    }

    // False at its end.
    bool read() {
        const ssize_t count = ::recv(socket_, piece_.data(), piece_.size(), MSG_DONTWAIT);
        if (count > 0) {
            output_.append(piece_.data(), static_cast<std::size_t>(count));
        }
        return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
    }

    const std::string& name_;
    const int socket_;
    std::string_view left_;
    const FilterLimits limits_;
    std::string output_;
    std::array<char, kPieceBytes> piece_;
};

}  // namespace

Result<std::string> run_filter(
    const ChildCommand& command, std::string_view input, const FilterLimits& limits
) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail(Code::worker_unavailable, "no socket for a process: " + text_of(errno));
    }
    const File ours(ends[0]);
    File theirs(ends[1]);
    SpawnPlan plan;
    posix_spawn_file_actions_adddup2(&plan.actions, theirs.number(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&plan.actions, theirs.number(), STDOUT_FILENO);
    pid_t pid = 0;
    if (const int error = plan.spawn(command, pid); error != 0) {
        return fail(
            Code::worker_unavailable, command.name + " cannot be started: " + text_of(error)
        );
    }
    theirs.close();
    if (input.empty()) {
        ::shutdown(ours.number(), SHUT_WR);
    }
    auto output = Talk(command, ours.number(), input, limits).run();
    if (!output) {
        ::kill(-pid, SIGKILL);  // with what it has started itself
    }
    const int status = reap(pid);
    if (output && status != 0) {
        return fail(
            Code::worker_lost,
            command.name + (WIFSIGNALED(status)
                                ? " ended by signal " + std::to_string(WTERMSIG(status))
                                : " ended with status " + std::to_string(WEXITSTATUS(status)))
        );
    }
    return output;
}

}  // namespace comfyd
