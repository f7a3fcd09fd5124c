// Processes of this computer that are not our children, or no longer: after a restart all that is
// left of them is a number, and numbers are used again. So a process is named by its number and the
// moment it began, and signals go to exactly that one or to none.
//
// Read from /proc. Blocks shortly: for a pool. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd {

struct ProcessMark {
    pid_t pid = 0;
    std::uint64_t started = 0;  // in clock ticks since the computer's start: field 22 of its stat

    friend bool operator==(const ProcessMark&, const ProcessMark&) = default;
};

struct ProcessFacts {
    ProcessMark mark;
    pid_t parent = 0;
    pid_t session = 0;
    char state = '?';  // 'T': stopped by a signal

    bool is_held() const { return state == 'T' || state == 't'; }
};

// nullopt: there is none, or what is left of it only waits for its parent.
std::optional<ProcessFacts> find_process(pid_t pid);
bool is_running(const ProcessMark& process);
// When it began, also of one that has ended and waits for its parent; 0: there is none.
std::uint64_t process_start(pid_t pid);

// False: it is gone, or not ours to signal.
bool send_signal(const ProcessMark& process, int number);
// A descriptor that becomes readable when it ends, for the caller to close; -1: it is gone.
int open_process(const ProcessMark& process);

// Whom a program that shall end has to take along: what it started, and what that started, whatever
// group or session they are in and whoever their parents are by now.
struct ProcessFamily {
    // A variable that was given to the first of them and that they pass on. Its value is of no
    // other family; once the leader is gone, those of its session are known by it on their command
    // line, too.
    std::string name;
    std::string value;
    // The first of them, which leads a session; pid 0: not known.
    ProcessMark leader{};
    // That they are in (base/cgroup.hpp); empty: none.
    std::filesystem::path cgroup{};
};
// Those that run now, without this process.
std::vector<ProcessMark> find_family(const ProcessFamily& family);

// Was "NAME=value" in its environment when it began? False also for processes of others.
bool was_given(pid_t pid, std::string_view variable);

}  // namespace comfyd
