#include "base/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
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

#include "base/log.hpp"

namespace comfyd {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

constexpr asio::use_awaitable_t<Executor> kAwait{};
constexpr std::size_t kLineBytesMax = 4096;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

// How the child begins: in a process group of its own, so that a Ctrl-C on our terminal is ours to
// pass on, with every signal as a new program expects it, and with no file but the standard three.
class SpawnPlan {
public:
    explicit SpawnPlan(int output) {
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        posix_spawnattr_init(&attributes);
        sigset_t none;
        sigset_t all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        );
    }
    ~SpawnPlan() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;

    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

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
                "a child process says", {{"process", name_}, {"pid", pid_}, {"line", line_}}
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
    std::vector<std::string> arguments = command.arguments;
    arguments.insert(arguments.begin(), command.program);
    std::vector<std::string> environment = command.environment;
    const SpawnPlan plan(pipe[1]);
    pid_t pid = 0;
    const int failed = ::posix_spawn(
        &pid,
        command.program.c_str(),
        &plan.actions,
        &plan.attributes,
        pointers_to(arguments).data(),
        pointers_to(environment).data()
    );
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
