#include "base/confinement.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace comfyd {
namespace {

namespace fs = std::filesystem;

// Runs `work` in a process of its own, for confinement has no way back. Its answer is `work`'s.
int run_apart(const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(work());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool can_read(const fs::path& file) {
    return std::ifstream(file).good();
}
bool can_write(const fs::path& file) {
    return std::ofstream(file).put('x').flush().good();
}

// Not malloc(), of which the compiler knows too much.
bool can_have(std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}

class ConfinementTest : public testing::Test {
protected:
    ConfinementTest() {
        std::string name = fs::temp_directory_path() / "comfyd-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        fs::create_directory(own_ = folder_ / "own");
        std::ofstream(folder_ / "of another") << "secret";
        limits_.folders = {own_};
    }
    ~ConfinementTest() override { fs::remove_all(folder_); }

    // After confine(); skips what this kernel cannot do.
    int run_confined(const std::function<int()>& work) {
        return run_apart([&] {
            const auto missing = confine(limits_);
            return missing && missing->empty() ? work() : kCannot;
        });
    }
    static constexpr int kCannot = 77;

    fs::path folder_;
    fs::path own_;
    Confinement limits_;
};

#define SKIP_WHERE_IMPOSSIBLE(answer)                      \
    if ((answer) == kCannot) {                             \
        GTEST_SKIP() << "this kernel cannot do all of it"; \
    }

TEST_F(ConfinementTest, OneThatHasAllThatItNeedsReadsNothingOfTheSystem) {
    limits_.folders.clear();
    limits_.reads_system = false;
    const int answer = run_confined([] {
        return can_read("/etc/passwd") || can_read("/proc/self/status") ? 1 : 0;
    });
    SKIP_WHERE_IMPOSSIBLE(answer);
    EXPECT_EQ(answer, 0);
}

TEST_F(ConfinementTest, SeesItsOwnFilesAndTheSystemsOnly) {
    const int answer = run_confined([this] {
        const bool own = can_write(own_ / "a") && can_read(own_ / "a") &&
                         fs::create_directories(own_ / "deep" / "er");
        std::error_code error;
        fs::rename(own_ / "a", own_ / "deep" / "a", error);
        const bool system = can_read("/proc/self/status") && can_write("/dev/null");
        const bool other = can_read(folder_ / "of another") || can_write(folder_ / "new") ||
                           can_write("/dev/shm/comfyd-confined");
        return (own && !error && system ? 0 : 1) + (other ? 2 : 0);
    });
    SKIP_WHERE_IMPOSSIBLE(answer);
    EXPECT_EQ(answer, 0);
    EXPECT_TRUE(fs::exists(own_ / "deep" / "a"));
}

TEST_F(ConfinementTest, HasNoNetworkAndStartsNothing) {
    const int answer = run_confined([] {
        const bool inet = ::socket(AF_INET, SOCK_STREAM, 0) >= 0;
        const bool datagrams = ::socket(AF_UNIX, SOCK_DGRAM, 0) >= 0;
        const int local = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr address{AF_UNIX, "/x"};
        const bool connects = ::connect(local, &address, sizeof address) == 0 || errno != EPERM;
        const bool signals = ::kill(::getppid(), 0) == 0;
        ::execl("/bin/true", "true", nullptr);
        return (inet ? 1 : 0) + (datagrams ? 2 : 0) + (local < 0 ? 4 : 0) + (connects ? 8 : 0) +
               (signals ? 16 : 0) + (::raise(0) == 0 ? 0 : 32);
    });
    SKIP_WHERE_IMPOSSIBLE(answer);
    EXPECT_EQ(answer, 0);
}

#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST_F(ConfinementTest, OneThatOnlyComputesHasNothingElse) {
    limits_.folders.clear();
    limits_.reads_system = false;
    limits_.only_computes = true;
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const int answer = run_confined([&pipe] {
        const auto is_refused = [](long made) { return made < 0 && errno == EPERM; };
        const std::array refused{
            is_refused(::socket(AF_UNIX, SOCK_STREAM, 0)),
            is_refused(::socket(AF_INET, SOCK_STREAM, 0)),
            is_refused(::socketpair(AF_UNIX, SOCK_STREAM, 0, std::array<int, 2>{}.data())),
            is_refused(::execl("/bin/true", "true", nullptr)),
            is_refused(::fork()),
            is_refused(::open("/dev/null", O_RDONLY)),
            is_refused(::kill(::getppid(), 0)),
            is_refused(::prctl(PR_SET_DUMPABLE, 1)),
            is_refused(::chdir("/")),
            is_refused(::syscall(SYS_io_uring_setup, 1, nullptr)),
            is_refused(::syscall(SYS_memfd_create, "x", 0)),
            ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                MAP_FAILED,
        };
        for (std::size_t i = 0; i < refused.size(); ++i) {
            if (!refused[i]) {
                return static_cast<int>(i) + 1;
            }
        }
        // What remains.
        int sum = 0;
        std::thread([&sum] { sum = 42; }).join();
        char byte = 'x';
        const bool speaks = ::write(pipe[1], &byte, 1) == 1 && ::read(pipe[0], &byte, 1) == 1;
        return sum == 42 && speaks && can_have(16ULL << 20) && ::raise(0) == 0 ? 0 : 100;
    });
    ::close(pipe[0]);
    ::close(pipe[1]);
    SKIP_WHERE_IMPOSSIBLE(answer);
    EXPECT_EQ(answer, 0);
}
#endif

TEST_F(ConfinementTest, ComputingTimeHasAnEnd) {
    limits_.cpu_seconds_max = 7;
    const int answer = run_confined([] {
        rlimit limit{};
        return ::getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_max == 7 ? 0 : 1;
    });
    SKIP_WHERE_IMPOSSIBLE(answer);
    EXPECT_EQ(answer, 0);
}

TEST_F(ConfinementTest, MemoryAndFilesHaveAnEnd) {
    limits_.memory_bytes_max = 256ULL << 20;
    limits_.open_files_max = 100;
    const int answer = run_confined([] {
        rlimit files{};
        rlimit dumps{};
        ::getrlimit(RLIMIT_NOFILE, &files);
        ::getrlimit(RLIMIT_CORE, &dumps);
        return (can_have(512ULL << 20) ? 1 : 0) + (can_have(16ULL << 20) ? 0 : 2) +
               (files.rlim_cur != 100 ? 4 : 0) + (dumps.rlim_cur != 0 ? 8 : 0);
    });
    SKIP_WHERE_IMPOSSIBLE(answer);
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    EXPECT_EQ(answer & ~1, 0);
#else
    EXPECT_EQ(answer, 0);
#endif
}

TEST_F(ConfinementTest, AProcessWhoseParentIsGoneDoesNotBegin) {
    limits_.parent = ::getpid() + 1;
    const int answer = run_apart([this] {
        const auto confined = confine(limits_);
        return !confined && confined.error().code == Code::shutting_down ? 0 : 1;
    });
    EXPECT_EQ(answer, 0);
}

}  // namespace
}  // namespace comfyd
