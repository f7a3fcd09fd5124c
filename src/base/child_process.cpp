#include "base/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "base/spawn_plan.hpp"

namespace comfyd {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

constexpr asio::use_awaitable_t<Executor> kAwait{};
constexpr std::size_t kLineBytesMax = 4096;

std::string describe(int status) {
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        return "signal " + std::to_string(number) + " (" + ::strsignal(number) + ")";
    }
    return "status " + std::to_string(WEXITSTATUS(status));
}

tl::unexpected<Error> cannot_start(const ChildCommand& command, int error) {
    return fail(
        Code::worker_unavailable,
        "the process '" + command.name + "' cannot be started: " + std::strerror(error)
    );
}

}  // namespace

class ChildProcess::Impl {
public:
    Impl(std::string name, pid_t pid, Descriptor output, Descriptor end)
        : name_(std::move(name)), pid_(pid), output_(std::move(output)), end_(std::move(end)) {}
    ~Impl() {
        if (!reaped_) {
            signal(SIGKILL);
            reap();
        }
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    pid_t pid() const { return pid_; }
    void signal(int number) {
        if (!reaped_) {
            ::kill(pid_, number);
        }
    }

    Task<std::string> wait() {
        bool open = true;
        while (open) {
            open = co_await read_output();
        }
        tell_line();
        boost::system::error_code error;
        co_await end_.async_wait(Descriptor::wait_read, asio::redirect_error(kAwait, error));
        if (error) {
            co_return std::string();
        }
        co_return describe(reap());
    }

private:
    // False at its end.
    Task<bool> read_output() {
        std::array<char, kLineBytesMax> bytes;
        boost::system::error_code error;
        const std::size_t count = co_await output_.async_read_some(
            asio::buffer(bytes), asio::redirect_error(kAwait, error)
        );
        for (const char byte : std::string_view(bytes.data(), count)) {
            if (byte != '\n') {
                line_ += byte;
            }
            if (byte == '\n' || line_.size() == kLineBytesMax) {
                tell_line();
            }
        }
        co_return !error;
    }

    void tell_line() {
        if (!line_.empty()) {
            log::warning(
                "a child process says",
                {{"process", name_}, {"pid", pid_}, {"line", log::foreign(line_)}}
            );
            line_.clear();
        }
    }

    int reap() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        reaped_ = true;
        return status;
    }

    std::string name_;
    pid_t pid_;
    Descriptor output_;
    Descriptor end_;  // a pidfd: readable once the process has ended
    std::string line_;
    bool reaped_ = false;
};

ChildProcess::ChildProcess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChildProcess::~ChildProcess() = default;

pid_t ChildProcess::pid() const {
    return impl_->pid();
}

void ChildProcess::signal(int number) {
    impl_->signal(number);
}

Task<std::string> ChildProcess::wait() {
    return impl_->wait();
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(
    Executor executor, const ChildCommand& command
) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
        return cannot_start(command, errno);
    }
    Descriptor output(executor, pipe[0]);
    Descriptor child_side(executor, pipe[1]);  // closed when we return
    SpawnPlan plan;
    posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&plan.actions, pipe[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&plan.actions, pipe[1], STDERR_FILENO);
    pid_t pid = 0;
    const int failed = plan.spawn(command, pid);
    if (failed != 0) {
        return cannot_start(command, failed);
    }
    const int end = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (end < 0) {
        const int error = errno;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return cannot_start(command, error);
    }
    return std::unique_ptr<ChildProcess>(new ChildProcess(
        std::make_unique<Impl>(command.name, pid, std::move(output), Descriptor(executor, end))
    ));
}

}  // namespace comfyd
