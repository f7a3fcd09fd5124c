#include "agent/log_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/disk.hpp"

namespace comfyd::agent {

LogOutput::LogOutput(LogTarget target, const std::filesystem::path& path)
    : is_both_(target == LogTarget::both),
      file_(target == LogTarget::console ? std::filesystem::path() : path) {
    std::array<int, 2> pipe{};
    if (target == LogTarget::console || ::pipe2(pipe.data(), O_CLOEXEC) != 0) {
        return;
    }
    reading_ = net::Descriptor(pipe[0]);
    const net::Descriptor writing(pipe[1]);
    console_ = net::Descriptor(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    ::dup2(writing.number(), STDERR_FILENO);
    thread_ = std::thread([this] { copy(); });
}

LogOutput::~LogOutput() {
    if (console_) {
        ::dup2(console_.number(), STDERR_FILENO);  // closes the last end that writes
        thread_.join();
    }
}

void LogOutput::copy() {
    std::array<char, 4096> room{};
    ssize_t count = 1;
    while (count > 0) {
        count = ::read(reading_.number(), room.data(), room.size());
        if (count < 0 && errno == EINTR) {
            count = 1;
            continue;
        }
        const std::string_view bytes(room.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
        file_.append(bytes);
        if (is_both_) {
            write_all(console_.number(), bytes);
        }
    }
}

}  // namespace comfyd::agent
