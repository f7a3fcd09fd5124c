// Programs that try to get out of a sandbox, at each of its levels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/comfyd.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

struct Ran {
    int code = -1;
    std::string output;
    std::string errors;
};
Ran run(std::vector<std::string> words, std::map<std::string, std::string> environment = {}) {
    Process process(
        ProcessOptions{.arguments = std::move(words), .environment = std::move(environment)}
    );
    const int code = process.wait().value_or(-1);
    return {code, process.output(), process.errors()};
}

const std::string& support_of_system() {
    static const std::string support = run({COMFYD_BINARY, "sandbox", "check"}).output;
    return support;
}

class Sandbox : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const std::string& support = support_of_system();
        const bool is_there =
            GetParam() == "minimal" || support.find("level     strict") != std::string::npos ||
            (GetParam() == "basic" && support.find("level     basic") != std::string::npos);
        if (!is_there) {
            GTEST_SKIP() << "this system has no such level: " << support;
        }
        fs::create_directory(own_ = folder_ / "own");
        folder_.write("of another", "a secret of another\n");
    }
    bool has_walls() const { return GetParam() != "minimal"; }

    // Runs a script in the sandbox.
    Ran confined(
        const std::string& script,
        std::vector<std::string> more = {},
        std::map<std::string, std::string> environment = {}
    ) const {
        return confined_words({"/bin/sh", "-c", script}, std::move(more), std::move(environment));
    }
    Ran python(const std::string& script, std::vector<std::string> more = {}) const {
        return confined_words({"/usr/bin/python3", "-c", script}, std::move(more), {});
    }
    Ran confined_words(
        std::vector<std::string> command,
        std::vector<std::string> more,
        std::map<std::string, std::string> environment
    ) const {
        std::vector<std::string> words = before_;
        words.insert(
            words.end(),
            {COMFYD_BINARY, "sandbox", "run", "--level", GetParam(), "--write", own_.string()}
        );
        words.insert(words.end(), more.begin(), more.end());
        words.emplace_back("--");
        words.insert(words.end(), command.begin(), command.end());
        return run(std::move(words), std::move(environment));
    }

    TempDir folder_;
    fs::path own_;
    std::vector<std::string> before_;
};

// Without either CUDA says "OS call failed".
TEST_P(Sandbox, CudaNamesItsThreadsAndHasASocketOfItsOwn) {
    const Ran ran = python(
        R"python(
import os, socket, threading
def name(kind):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
        comm.write(kind)
    print(open(f"/proc/self/task/{threading.get_native_id()}/comm").read().strip())
worker = threading.Thread(target=name, args=("cuda-EvtHandlr",))
worker.start()
worker.join()
own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
own.bind("\0cuda-uvmfd-%d" % os.getpid())
own.listen()
print("listens")
for family, kind in [(socket.AF_UNIX, socket.SOCK_DGRAM), (socket.AF_INET, socket.SOCK_SEQPACKET)]:
    try:
        socket.socket(family, kind)
        print("open")
    except OSError:
        print("refused")
)python",
        {"--gpu"}
    );
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_THAT(ran.output, testing::StartsWith("cuda-EvtHandlr\nlistens\n"));
    if (has_walls()) {
        EXPECT_THAT(ran.output, testing::EndsWith("refused\nrefused\n"));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Levels,
    Sandbox,
    testing::Values("minimal", "basic", "strict"),
    [](const auto& level) { return level.param; }
);
class StrictSandbox : public Sandbox {};
INSTANTIATE_TEST_SUITE_P(Levels, StrictSandbox, testing::Values("strict"));

TEST_P(Sandbox, RunsAProgramAndTellsHowItEnded) {
    const Ran ran = confined("echo out; echo err >&2; exit 42");
    EXPECT_EQ(ran.code, 42);
    EXPECT_EQ(ran.output, "out\n");
    EXPECT_EQ(ran.errors, "err\n");
    const Ran killed = confined("kill -9 $$");
    EXPECT_EQ(killed.code, 137) << killed.errors;
    EXPECT_NE(confined_words({"/no/such/program"}, {}, {}).code, 0);
}

TEST_P(Sandbox, ReadsNothingOfOthers) {
    const Ran ran = confined("cat '" + (folder_ / "of another") + "'; cat /etc/shadow /root/.*");
    if (has_walls()) {
        EXPECT_EQ(ran.output, "");
    }
    const Ran own = confined("echo mine > " + own_.string() + "/a && cat " + own_.string() + "/a");
    EXPECT_EQ(own.output, "mine\n") << own.errors;
    const Ran shown =
        confined("cat '" + (folder_ / "of another") + "'", {"--read", folder_ / "of another"});
    EXPECT_EQ(shown.output, "a secret of another\n") << shown.errors;
}

TEST_P(Sandbox, WritesNothingElsewhere) {
    const std::string target = folder_ / "of another";
    const fs::path system = "/usr" / folder_.path().filename();  // other levels write there, too
    const Ran ran = confined(
        "echo x > '" + target + "'; echo x > '" + (folder_ / "new") + "'; ln -s '" + target + "' " +
            own_.string() + "/link; echo x > " + own_.string() + "/link; echo x > " +
            system.string() + "; echo written > $HOME/scratch && cat $HOME/scratch",
        {"--read", target}
    );
    EXPECT_EQ(ran.output, "written\n") << "what is its own it may write";
    EXPECT_FALSE(fs::exists(system) && has_walls());
    fs::remove(system);
    if (has_walls()) {
        EXPECT_EQ(read_file(target), "a secret of another\n");
        EXPECT_FALSE(fs::exists(folder_ / "new"));
    }
}

TEST_P(Sandbox, LeavesNothingBehind) {
    const Ran ran = confined("touch $HOME/a && mkdir -p $TMPDIR/b/c && readlink -f $HOME");
    ASSERT_EQ(ran.code, 0) << ran.errors;
    const std::string home = ran.output.substr(0, ran.output.find('\n'));
    EXPECT_TRUE(home == "/tmp" || !fs::exists(home)) << home;
}

TEST_P(Sandbox, HasNoEnvironmentButItsOwn) {
    const std::map<std::string, std::string> secrets{
        {"AWS_SECRET_ACCESS_KEY", "s3cr3t"}, {"COMFYD_JWT_SECRET", "s3cr3t"}, {"LANG", "C.UTF-8"}
    };
    const Ran ran = confined("env; cat /proc/*/environ 2>/dev/null", {}, secrets);
    EXPECT_THAT(ran.output, HasSubstr("LANG=C.UTF-8"));
    if (has_walls()) {
        EXPECT_THAT(ran.output, Not(HasSubstr("s3cr3t"))) << "nor of those who started it";
    }
    const Ran plain = confined("env", {"--env", "MINE=1"}, secrets);
    EXPECT_THAT(plain.output, Not(HasSubstr("s3cr3t")));
    EXPECT_THAT(plain.output, HasSubstr("MINE=1"));
}

TEST_P(Sandbox, HasNoFilesOpenButThree) {
    const Ran ran = python(
        "import os; print([f for f in range(3, 100) if os.path.exists(f'/proc/self/fd/{f}') and "
        "'proc' not in os.readlink(f'/proc/self/fd/{f}')])"
    );
    EXPECT_EQ(ran.output, "[]\n") << ran.errors;
}

// What a program tries, in Python: it says what it could.
constexpr const char* kConnect = R"python(
import socket, sys
def tries(name, what):
    try:
        what()
        print(name)
    except OSError:
        pass
address = ("127.0.0.1", int(sys.argv[1]))
tries("connects", lambda: socket.create_connection(address, 2))
def fast():
    s = socket.socket()
    s.sendto(b"x", 0x20000000, address)
tries("connects fast", fast)
tries("sends", lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", address))
def local():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[2])
tries("connects to a file", local)
def listens():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
tries("listens", listens)
)python";

TEST_P(Sandbox, ReachesNobody) {
    Comfyd here;
    ComfydOptions other;
    other.listen = "unix:" + (own_ / "here.sock").string();
    Comfyd by_file(other);
    const std::string port = here.url().substr(here.url().rfind(':') + 1);
    const auto ask = [&](const std::string& network) {
        return confined_words(
                   {"/usr/bin/python3", "-c", kConnect, port, own_ / "here.sock"},
                   {"--network", network},
                   {}
        )
            .output;
    };
    EXPECT_EQ(ask("all"), "connects\nconnects fast\nsends\nconnects to a file\nlistens\n");
    if (has_walls()) {
        EXPECT_EQ(ask("none"), "");
        EXPECT_EQ(ask("serve"), "listens\n");
    }
}

TEST_P(Sandbox, TouchesNoOtherProcess) {
    const std::string outside = std::to_string(::getpid());
    const Ran ran = python(
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "def tries(name, ok):\n"
        "    if ok: print(name)\n"
        "pid = " +
        outside +
        "\n"
        "tries('privileges', open('/proc/self/status').read().find('NoNewPrivs:\\t1') < 0)\n"
        "tries('capabilities', 'CapEff:\\t0000000000000000' not in "
        "open('/proc/self/status').read())\n"
        "tries('ptrace', c.ptrace(16, pid, 0, 0) == 0)\n"
        "tries('own ptrace', c.ptrace(0, 0, 0, 0) == 0)\n"
        "tries('namespaces', c.unshare(0x10000000) == 0)\n"
        "tries('mounts', c.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0)\n"
        "tries('chroot', c.chroot(b'/') == 0)\n"
        "tries('keys', c.syscall(250, 0, -3, 0, 0, 0) >= 0)\n"
        "tries('rings', c.syscall(425, 8, ctypes.create_string_buffer(256)) >= 0)\n"
        "tries('bpf', c.syscall(321, 0, 0, 0) >= 0)\n"
    );
    if (has_walls()) {
        EXPECT_EQ(ran.output, "") << ran.errors;
    } else {
        EXPECT_THAT(ran.output, Not(HasSubstr("privileges"))) << ran.errors;
        EXPECT_THAT(ran.output, Not(HasSubstr("capabilities"))) << ran.errors;
    }
}

TEST_P(Sandbox, HasNoMoreThanItIsGiven) {
    const Ran memory = python(
        "try:\n    x = bytearray(1 << 30)\n    print('had it')\nexcept MemoryError:\n    "
        "print('no')\n",
        {"--memory-mb", "256"}
    );
    EXPECT_EQ(memory.output, "no\n") << memory.errors;
    const Ran reserved = python(
        "import mmap\nm = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | "
        "0x4000, prot=0)\nprint('reserved')\n",
        {"--memory-mb", "256"}
    );
    EXPECT_EQ(reserved.output, "reserved\n") << "as CUDA does: " << reserved.errors;
    const Ran limits =
        confined("ulimit -t; ulimit -n; ulimit -c", {"--cpu-seconds", "7", "--open-files", "77"});
    EXPECT_EQ(limits.output, "7\n77\n0\n");
}

// Below it the limit counts others of the same user, too.
TEST_P(StrictSandbox, ABombOfProcessesDoesNotGrow) {
    if (::getuid() == 0) {
        // Root has no limit of processes: as somebody else.
        fs::permissions(folder_.path(), fs::perms::all);
        fs::permissions(own_, fs::perms::all);
        before_ = {"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
    }
    const Ran ran = python(
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 500:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        made += 1\n"
        "except OSError:\n"
        "    pass\n"
        "print(made)\n",
        {"--processes", "40"}
    );
    ASSERT_FALSE(ran.output.empty()) << ran.errors;
    EXPECT_LT(std::stoi(ran.output), 45);
    EXPECT_GT(std::stoi(ran.output), 10);
}

TEST_P(Sandbox, EndsWithWhoeverStartedIt) {
    const std::string mark = (own_ / "running").string();
    std::vector<std::string> words{
        COMFYD_BINARY,
        "sandbox",
        "run",
        "--level",
        GetParam(),
        "--write",
        own_.string(),
        "--",
        "/bin/sh",
        "-c",
        "exec 9> " + mark + "; echo go > " + mark + ".begun; exec sleep 600"
    };
    Process process(ProcessOptions{.arguments = words});
    ASSERT_TRUE(wait_until([&] { return fs::exists(mark + ".begun"); }));
    process.kill(SIGKILL);
    process.wait();
    const auto is_open = [&] {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator("/proc", error)) {
            if (fs::read_symlink(entry.path() / "fd" / "9", error) == fs::path(mark)) {
                return true;
            }
        }
        return false;
    };
    EXPECT_TRUE(wait_until([&] { return !is_open(); }));
}

TEST(SandboxOfTheServer, IsShownAndRefusedWhereItIsNotToBeHad) {
    for (const std::string level : {"minimal", "basic", "strict"}) {
        SCOPED_TRACE(level);
        ComfydOptions serve;
        serve.arguments = {"--set", "sandbox.level=" + level};
        Comfyd comfyd(serve);
        const Reply shown = comfyd.http().get("/admin/v1/sandbox");
        EXPECT_EQ(shown.json_at("/configured"), json::value(level)) << shown.body;
        const std::string in_force(shown.json_at("/level").as_string());
        EXPECT_THAT(
            comfyd.http().get("/metrics").body,
            HasSubstr("comfyd_sandbox_level{level=\"" + in_force + "\"} 1")
        );
        const std::string id = comfyd.submit(small_picture(3));
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded") << "the engine runs";
        EXPECT_THAT(
            comfyd.log(),
            HasSubstr(in_force == level ? "children are confined" : "children are less confined")
        );
        comfyd.stop();
        Process required(ProcessOptions{
            .arguments =
                {COMFYD_BINARY,
                 "serve",
                 "--listen",
                 "127.0.0.1:0",
                 "--data",
                 comfyd.data(),
                 "--set",
                 "sandbox.level=" + level,
                 "--set",
                 "sandbox.required=true"},
        });
        const bool is_up = required.wait_for_line("listening on ").has_value();
        EXPECT_EQ(is_up, in_force == level);
        if (!is_up) {
            EXPECT_THAT(required.errors(), HasSubstr("sandbox.required"));
        }
    }
}

}  // namespace
}  // namespace comfyd::support
