#include "app/commands/sandbox_command.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "app/commands/cli.hpp"
#include "base/scratch_folder.hpp"
#include "base/spawn_plan.hpp"

namespace comfyd::app {
namespace {

// What programs with a GPU look for; all else stays outside.
constexpr std::array kEnvironment{
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "PYTORCH_CUDA_ALLOC_CONF",
};

int complain(const Error& error) {
    std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
    return error.code == Code::invalid_argument ? kExitUsage : kExitUnavailable;
}

SandboxLevel level_of(const std::string& word) {
    return word == "minimal" ? SandboxLevel::minimal
           : word == "basic" ? SandboxLevel::basic
                             : SandboxLevel::strict;
}

SandboxNetwork network_of(const std::string& word) {
    return word == "all"     ? SandboxNetwork::all
           : word == "serve" ? SandboxNetwork::serve
                             : SandboxNetwork::none;
}

SandboxNeeds needs_of(const SandboxFlags& flags) {
    SandboxNeeds needs = flags.order.needs;
    needs.readable.assign(flags.readable.begin(), flags.readable.end());
    needs.writable.assign(flags.writable.begin(), flags.writable.end());
    needs.network = network_of(flags.network);
    if (flags.memory_mb != 0) {
        needs.memory_bytes_max = flags.memory_mb << 20;
    }
    return needs;
}

std::vector<std::string> environment_of(const SandboxFlags& flags) {
    std::vector<std::string> chosen;
    const auto pass_on = [&chosen](const std::string& name) {
        if (const char* value = std::getenv(name.c_str())) {
            chosen.push_back(name + "=" + value);
        }
    };
    for (const char* name : kEnvironment) {
        pass_on(name);
    }
    for (const std::string& entry : flags.environment) {
        if (entry.find('=') == std::string::npos) {
            pass_on(entry);
        } else {
            chosen.push_back(entry);
        }
    }
    return chosen;
}

int check() {
    const SandboxSupport support = look_at_sandbox_support();
    std::printf("level     %s\n", std::string(to_string(support.best())).c_str());
    std::printf("landlock  version %d\n", support.landlock);
    std::printf("seccomp   %s\n", support.seccomp ? "yes" : "no");
    std::printf(
        "bwrap     %s\n",
        support.bubblewrap.empty() ? support.problem.c_str() : support.bubblewrap.c_str()
    );
    for (const auto& device : gpu_devices()) {
        std::printf("gpu       %s\n", device.c_str());
    }
    return kExitOk;
}

// As a shell tells it.
int status_of(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ::kill(-child, SIGKILL);  // what it has started and left behind
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(const SandboxFlags& flags) {
    const SandboxLevel level = level_of(flags.level);
    auto scratch = ScratchFolder::make();
    if (!scratch) {
        return complain(scratch.error());
    }
    SandboxNeeds needs = needs_of(flags);
    needs.scratch = scratch->path();
    const auto& words = flags.order.command;
    ChildCommand command{
        words.front(), words.front(), {words.begin() + 1, words.end()}, environment_of(flags)
    };
    auto confined = sandboxed(
        std::move(command), needs, level, look_at_sandbox_support(level == SandboxLevel::strict)
    );
    if (!confined) {
        return complain(confined.error());
    }
    // Whoever ends us by hand waits until the child and its folder are gone.
    ::signal(SIGINT, SIG_IGN);
    SpawnPlan plan;
    pid_t child = 0;
    if (const int error = plan.spawn(*confined, child); error != 0) {
        return complain(Error(Code::worker_unavailable, "the sandbox cannot be started"));
    }
    return status_of(child);
}

}  // namespace

int run_sandbox(const SandboxFlags& flags) {
    if (flags.action == "check") {
        return check();
    }
    if (flags.action == "run") {
        return run(flags);
    }
    SandboxOrder order = flags.order;
    order.level = level_of(flags.level);
    order.needs = needs_of(flags);
    return complain(enter_sandbox(order));
}

}  // namespace comfyd::app
