#include "base/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <set>

#include "base/cgroup.hpp"

namespace comfyd {
namespace {

constexpr std::size_t kEnvironmentBytesMax = 4 * 1024 * 1024;

// As much as there is, up to `bytes_max`; empty where it cannot be read.
std::string read_proc(pid_t pid, const char* file, std::size_t bytes_max) {
    const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string text;
    if (fd < 0) {
        return text;
    }
    std::array<char, 16 * 1024> piece;
    while (text.size() < bytes_max) {
        const ssize_t count = ::read(fd, piece.data(), piece.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        text.append(piece.data(), static_cast<std::size_t>(count));
    }
    ::close(fd);
    return text;
}

template <class Number>
Number number_in(std::string_view text) {
    Number number{};
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// "pid (name) state parent group session … started …": a name may have spaces and brackets in it.
std::optional<ProcessFacts> parse_stat(pid_t pid, std::string_view stat) {
    const auto name_end = stat.rfind(") ");
    if (name_end == std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view left = stat.substr(name_end + 2);
    ProcessFacts facts;
    facts.mark.pid = pid;
    constexpr int kStarted = 22;
    for (int field = 3; field <= kStarted; ++field) {
        const auto end = left.find(' ');
        const std::string_view word = left.substr(0, end);
        if (word.empty()) {
            return std::nullopt;
        }
        switch (field) {
            case 3:
                facts.state = word.front();
                break;
            case 4:
                facts.parent = number_in<pid_t>(word);
                break;
            case 6:
                facts.session = number_in<pid_t>(word);
                break;
            case kStarted:
                facts.mark.started = number_in<std::uint64_t>(word);
                break;
            default:
                break;
        }
        left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    }
    return facts;
}

std::vector<ProcessFacts> all_processes() {
    std::vector<ProcessFacts> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), &::closedir);
    while (folder) {
        const dirent* entry = ::readdir(folder.get());
        if (entry == nullptr) {
            break;
        }
        const pid_t pid = number_in<pid_t>(entry->d_name);
        if (auto facts = pid > 1 ? find_process(pid) : std::nullopt) {
            found.push_back(*facts);
        }
    }
    return found;
}

// On its command line.
bool mentions(pid_t pid, std::string_view text) {
    return read_proc(pid, "cmdline", kEnvironmentBytesMax).find(text) != std::string::npos;
}

}  // namespace

std::optional<ProcessFacts> find_process(pid_t pid) {
    if (pid <= 0) {
        return std::nullopt;
    }
    auto facts = parse_stat(pid, read_proc(pid, "stat", 4'096));
    const bool has_ended = facts && (facts->state == 'Z' || facts->state == 'X');
    return has_ended ? std::nullopt : facts;
}

std::uint64_t process_start(pid_t pid) {
    const auto facts = parse_stat(pid, read_proc(pid, "stat", 4'096));
    return facts ? facts->mark.started : 0;
}

bool is_running(const ProcessMark& process) {
    const auto found = find_process(process.pid);
    return found && found->mark == process;
}

int open_process(const ProcessMark& process) {
    if (process.pid <= 0) {
        return -1;
    }
    // The descriptor holds on to one process: looked at after it is open, it is the right one.
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
    if (fd >= 0 && !is_running(process)) {
        ::close(fd);
        return -1;
    }
    return fd;
}

bool send_signal(const ProcessMark& process, int number) {
    const int fd = open_process(process);
    if (fd < 0) {
        return false;
    }
    const bool sent = ::syscall(SYS_pidfd_send_signal, fd, number, nullptr, 0) == 0;
    ::close(fd);
    return sent;
}

bool was_given(pid_t pid, std::string_view variable) {
    const std::string environment = read_proc(pid, "environ", kEnvironmentBytesMax);
    std::string_view left = environment;
    while (!left.empty()) {
        const auto end = left.find('\0');
        if (left.substr(0, end) == variable) {
            return true;
        }
        left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    }
    return false;
}

std::vector<ProcessMark> find_family(const ProcessFamily& family) {
    const std::vector<ProcessFacts> all = all_processes();
    const bool has_leader = std::ranges::any_of(all, [&family](const ProcessFacts& process) {
        return process.mark == family.leader;
    });
    const auto belongs = [&family, has_leader](const ProcessFacts& process) {
        // A session is the leader's for certain while that runs: its number may be another's later.
        const bool in_session = family.leader.pid != 0 && process.session == family.leader.pid;
        return (in_session && (has_leader || mentions(process.mark.pid, family.value))) ||
               was_given(process.mark.pid, family.name + "=" + family.value);
    };
    std::set<pid_t> members;
    for (const pid_t pid : processes_in(family.cgroup)) {
        members.insert(pid);
    }
    members.erase(::getpid());
    for (const ProcessFacts& process : all) {
        if (process.mark.pid != ::getpid() && belongs(process)) {
            members.insert(process.mark.pid);
        }
    }
    // Children that have left the session with an environment of their own.
    for (bool grows = true; grows;) {
        grows = false;
        for (const ProcessFacts& process : all) {
            if (process.mark.pid != ::getpid() && members.contains(process.parent)) {
                grows |= members.insert(process.mark.pid).second;
            }
        }
    }
    std::vector<ProcessMark> found;
    for (const ProcessFacts& process : all) {
        if (members.contains(process.mark.pid)) {
            found.push_back(process.mark);
        }
    }
    return found;
}

}  // namespace comfyd
