#include "agent/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/spawn_plan.hpp"
#include "net/descriptor.hpp"

namespace comfyd::agent {
namespace {

namespace asio = boost::asio;
using Pipe = asio::posix::basic_stream_descriptor<Executor>;

constexpr asio::use_awaitable_t<Executor> kAwait{};
constexpr std::size_t kReadBytes = 16 * 1024;
constexpr Millis kLastWords{1'000};

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
        "'" + command.name + "' cannot be started: " + std::strerror(error)
    );
}

// Empty where the process is gone, also when it goes while it is read: a stream would throw then.
std::string read_proc(pid_t pid, const std::string& name) {
    constexpr std::size_t kBytesMax = 64 * 1024;
    const net::Descriptor file(
        ::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC)
    );
    std::string text;
    std::array<char, 4096> room{};
    ssize_t count = file ? 1 : 0;
    while (count > 0 && text.size() < kBytesMax) {
        count = ::read(file.number(), room.data(), room.size());
        text.append(room.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return count < 0 ? std::string() : text;
}

std::uint64_t number_in(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

constexpr int kTreeDepthMax = 32;

std::uint64_t memory_of_tree(pid_t pid, int depth) {
    const std::string status = read_proc(pid, "status");
    const auto line = status.find("\nVmRSS:");
    std::uint64_t bytes =
        line == std::string::npos ? 0 : number_in(std::string_view(status).substr(line)) * 1024;
    const std::string children = read_proc(pid, "task/" + std::to_string(pid) + "/children");
    std::string_view rest = children;
    while (!rest.empty() && depth < kTreeDepthMax) {
        const auto end = std::min(rest.find(' '), rest.size());
        if (end > 0) {
            bytes += memory_of_tree(static_cast<pid_t>(number_in(rest.substr(0, end))), depth + 1);
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return bytes;
}

}  // namespace

class Program::Impl {
public:
    Impl(Executor executor, pid_t pid, Pipe output, Pipe end, Output take)
        : pid_(pid),
          output_(std::move(output)),
          end_(std::move(end)),
          take_(std::move(take)),
          reading_(executor),
          said_all_(executor) {}
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
            ::kill(-pid_, number);
        }
    }

    Task<std::string> wait() {
        reading_.spawn("output of a program", read_output());
        boost::system::error_code error;
        co_await end_.async_wait(Pipe::wait_read, asio::redirect_error(kAwait, error));
        // Before the program is reaped: as long as it is not, its number is no other group's.
        signal(SIGKILL);
        // What left the group may hold the pipe for ever.
        if (!error && !has_said_all_) {
            co_await said_all_.wait_for(kLastWords);
        }
        reading_.cancel();
        co_await reading_.join();
        co_return error ? std::string() : describe(reap());
    }

private:
    // Ends when nobody of the group is left to write.
    Task<> read_output() {
        std::string room(kReadBytes, '\0');
        boost::system::error_code error;
        while (!error) {
            const std::size_t count = co_await output_.async_read_some(
                asio::buffer(room), asio::redirect_error(kAwait, error)
            );
            take_(std::string_view(room).substr(0, count));
        }
        has_said_all_ = true;
        said_all_.notify();
    }

    int reap() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        reaped_ = true;
        return status;
    }

    pid_t pid_;
    Pipe output_;
    Pipe end_;  // a pidfd: readable once the process has ended
    Output take_;
    TaskGroup reading_;
    Signal said_all_;
    bool has_said_all_ = false;
    bool reaped_ = false;
};

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;

pid_t Program::pid() const {
    return impl_->pid();
}

void Program::signal(int number) {
    impl_->signal(number);
}

Task<std::string> Program::wait() {
    return impl_->wait();
}

Result<std::unique_ptr<Program>> Program::start(
    Executor executor,
    const ChildCommand& command,
    const std::filesystem::path& folder,
    Output output
) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
        return cannot_start(command, errno);
    }
    Pipe our_side(executor, pipe[0]);
    Pipe its_side(executor, pipe[1]);  // closed when we return
    SpawnPlan plan;
    posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&plan.actions, pipe[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&plan.actions, pipe[1], STDERR_FILENO);
    if (!folder.empty()) {
        posix_spawn_file_actions_addchdir_np(&plan.actions, folder.c_str());
    }
    pid_t pid = 0;
    if (const int failed = plan.spawn(command, pid); failed != 0) {
        return cannot_start(command, failed);
    }
    const int end = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (end < 0) {
        const int error = errno;
        ::kill(-pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return cannot_start(command, error);
    }
    return std::unique_ptr<Program>(new Program(std::make_unique<Impl>(
        executor, pid, std::move(our_side), Pipe(executor, end), std::move(output)
    )));
}

std::uint64_t memory_of(pid_t pid) {
    return pid <= 0 ? 0 : memory_of_tree(pid, 0);
}

std::uint64_t started_at(pid_t pid) {
    const std::string stat = read_proc(pid, "stat");
    auto at = stat.rfind(')');  // its name may have spaces in it
    constexpr int kFieldsAfterName = 20;
    for (int field = 0; field < kFieldsAfterName && at != std::string::npos; ++field) {
        at = stat.find(' ', at + 1);
    }
    return at == std::string::npos ? 0 : number_in(std::string_view(stat).substr(at));
}

}  // namespace comfyd::agent
