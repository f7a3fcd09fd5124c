#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace comfyd::support {
namespace {

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            throw std::runtime_error("cannot make a pipe");
        }
        read_end = ends[0];
        write_end = ends[1];
    }
    int read_end = -1;
    int write_end = -1;
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& more) {
    std::vector<std::string> merged;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (!more.contains(text.substr(0, text.find('=')))) {
            merged.push_back(text);
        }
    }
    for (const auto& [name, value] : more) {
        merged.push_back(name + "=" + value);
    }
    return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (auto& text : strings) {
        out.push_back(text.data());
    }
    out.push_back(nullptr);
    return out;
}

// In the child, between fork and exec: only calls that are safe in a program with threads.
[[noreturn]] void become(
    char* const* arguments,
    char* const* environment,
    const char* directory,
    int out,
    int err,
    int failure,
    pid_t parent
) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDONLY);
    const bool ready = ::getppid() == parent && null >= 0 && ::dup2(null, 0) >= 0 &&
                       ::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0 &&
                       (directory == nullptr || ::chdir(directory) == 0);
    // Sockets of the test, listening ones above all, must not live on in the child.
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (ready) {
        ::execvpe(arguments[0], arguments, environment);
    }
    const int error = errno;
    [[maybe_unused]] const auto told = ::write(failure, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

Process::Process(ProcessOptions options) {
    if (options.arguments.empty()) {
        throw std::runtime_error("no program to start");
    }
    auto environment = merged_environment(options.environment);
    const auto argument_list = pointers(options.arguments);
    const auto environment_list = pointers(environment);
    const char* directory = options.directory.empty() ? nullptr : options.directory.c_str();
    const Pipe out;
    const Pipe err;
    const Pipe failure;
    int err_end = err.write_end;
    if (!options.stderr_file.empty()) {
        err_end =
            ::open(options.stderr_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        become(
            argument_list.data(),
            environment_list.data(),
            directory,
            out.write_end,
            err_end,
            failure.write_end,
            parent
        );
    }
    ::close(out.write_end);
    ::close(err.write_end);
    ::close(failure.write_end);
    if (err_end != err.write_end) {
        ::close(err_end);
    }
    int error = 0;
    const auto told = ::read(failure.read_end, &error, sizeof error);
    ::close(failure.read_end);
    if (pid_ < 0 || told > 0) {
        ::close(out.read_end);
        ::close(err.read_end);
        if (pid_ > 0) {
            ::waitpid(pid_, nullptr, 0);
        }
        throw std::runtime_error(
            "cannot start " + options.arguments[0] + ": " + std::strerror(error)
        );
    }
    collector_ = std::thread([this, out_end = out.read_end, error_end = err.read_end] {
        collect(out_end, error_end);
    });
}

Process::~Process() {
    if (running()) {
        kill(SIGKILL);
        reap(true);
    }
    collector_.join();
}

void Process::collect(int out, int err) {
    std::array<pollfd, 2> pipes{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
    std::array<char, 65536> buffer{};
    while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
        if (::poll(pipes.data(), pipes.size(), -1) < 0 && errno != EINTR) {
            break;
        }
        for (auto& pipe : pipes) {
            if (pipe.fd < 0 || pipe.revents == 0) {
                continue;
            }
            const auto count = ::read(pipe.fd, buffer.data(), buffer.size());
            const std::scoped_lock lock(mutex_);
            if (count > 0) {
                (&pipe == pipes.data() ? output_ : errors_)
                    .append(buffer.data(), static_cast<std::size_t>(count));
            } else if (count == 0 || errno != EINTR) {
                ::close(pipe.fd);
                pipe.fd = -1;
            }
            changed_.notify_all();
        }
    }
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
}

std::optional<std::string> Process::wait_for_line(
    std::string_view prefix, std::chrono::milliseconds deadline
) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    std::unique_lock lock(mutex_);
    while (true) {
        for (auto newline = output_.find('\n', searched_); newline != std::string::npos;
             newline = output_.find('\n', searched_)) {
            const std::string line = output_.substr(searched_, newline - searched_);
            searched_ = newline + 1;
            if (line.starts_with(prefix)) {
                return line.substr(prefix.size());
            }
        }
        if (ended_ || changed_.wait_until(lock, end) == std::cv_status::timeout) {
            return std::nullopt;
        }
    }
}

bool Process::reap(bool block) {
    if (status_) {
        return true;
    }
    int raw = 0;
    pid_t ended = 0;
    do {
        ended = ::waitpid(pid_, &raw, block ? 0 : WNOHANG);
    } while (ended < 0 && errno == EINTR);
    if (ended != pid_) {
        return false;
    }
    status_ = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    return true;
}

bool Process::running() {
    return !reap(false);
}

void Process::kill(int signal) {
    if (running()) {
        ::kill(pid_, signal);
    }
}

std::optional<int> Process::wait(std::chrono::milliseconds deadline) {
    wait_until([this] { return reap(false); }, deadline);
    if (status_) {
        // What it wrote last may still be in the pipes.
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, deadline, [this] { return ended_; });
    }
    return status_;
}

int Process::stop(std::chrono::milliseconds deadline) {
    kill(SIGTERM);
    if (!wait(deadline)) {
        kill(SIGKILL);
        reap(true);
    }
    return *status_;
}

std::string Process::output() const {
    const std::scoped_lock lock(mutex_);
    return output_;
}

std::string Process::errors() const {
    const std::scoped_lock lock(mutex_);
    return errors_;
}

}  // namespace comfyd::support
