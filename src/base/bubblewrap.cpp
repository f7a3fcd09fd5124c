// The outermost layer of a sandbox: a root of its own with what is needed in it, and no other
// processes, users or networks. Bubblewrap is asked to do it: it is small, well looked at, and
// needs no privileges where the kernel lets users have namespaces.
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/filter_process.hpp"
#include "base/landlock.hpp"
#include "base/sandbox.hpp"
#include "base/system_paths.hpp"

namespace comfyd {
namespace {

namespace fs = std::filesystem;

// Where distributions put it. Not from PATH: who may change that may not choose it.
constexpr std::array kPlaces{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};

std::vector<std::string> walls(const SandboxNeeds& needs) {
    std::vector<std::string> words{
        "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"
    };
    const auto add = [&words](const char* how, const fs::path& from, const fs::path& to) {
        words.insert(words.end(), {how, from.string(), to.string()});
    };
    if (needs.network != SandboxNetwork::none) {
        words.emplace_back("--share-net");
    }
    for (const char* path : kSystemFolders) {
        add("--ro-bind-try", path, path);
    }
    for (const char* path : kSystemSettings) {
        add("--ro-bind-try", path, path);
    }
    words.insert(words.end(), {"--proc", "/proc", "--dev", "/dev"});
    if (needs.scratch.empty()) {
        words.insert(words.end(), {"--tmpfs", "/tmp"});
    } else {
        add("--bind", needs.scratch, "/tmp");
    }
    if (needs.gpu) {
        for (const fs::path& device : gpu_devices()) {
            add("--dev-bind-try", device, device);
        }
    }
    for (const fs::path& path : needs.readable) {
        add("--ro-bind", path, path);
    }
    for (const fs::path& path : needs.writable) {
        add("--bind", path, path);
    }
    words.insert(
        words.end(), {"--chdir", needs.writable.empty() ? "/" : needs.writable.front().string()}
    );
    return words;
}

bool has_seccomp() {
    const std::uint32_t action = SECCOMP_RET_ERRNO;
    return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

// What it says when it runs nothing, in walls as others will have; empty: it works.
std::string try_out(const char* program) {
    // Its complaints are part of the answer.
    ChildCommand command{
        "bubblewrap",
        "/bin/sh",
        {"-c", R"("$0" "$@" -- /bin/sh -c "echo works" 2>&1 || true)", program},
        {}
    };
    const auto words = walls({});
    command.arguments.insert(command.arguments.end(), words.begin(), words.end());
    const auto said = run_filter(command, "", {Millis(10'000), 4'096});
    if (said && *said == "works\n") {
        return "";
    }
    return "it does not run here (" + (said ? *said : said.error().message) +
           "); user namespaces may be forbidden: kernel.apparmor_restrict_unprivileged_userns, "
           "user.max_user_namespaces, or a container without them";
}

}  // namespace

std::vector<fs::path> gpu_devices() {
    constexpr std::array kOthers{"/dev/dri", "/dev/kfd", "/run/nvidia-persistenced"};
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/dev", error)) {
        if (entry.path().filename().string().starts_with("nvidia")) {
            found.push_back(entry.path());
        }
    }
    for (const char* path : kOthers) {
        if (fs::exists(path, error)) {
            found.emplace_back(path);
        }
    }
    return found;
}

SandboxSupport look_at_sandbox_support(bool tries_bubblewrap) {
    SandboxSupport support;
    support.landlock = landlock_version();
    support.seccomp = has_seccomp();
    if (!tries_bubblewrap) {
        support.problem = "it was not looked for";
        return support;
    }
    support.problem = "it is not installed (Debian's package bubblewrap)";
    for (const char* place : kPlaces) {
        if (::access(place, X_OK) == 0) {
            support.problem = try_out(place);
            support.bubblewrap = support.problem.empty() ? place : "";
            break;
        }
    }
    return support;
}

ChildCommand in_bubblewrap(
    ChildCommand command, const SandboxNeeds& needs, const std::string& bubblewrap
) {
    std::vector<std::string> words = walls(needs);
    words.insert(words.end(), {"--", command.program});
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    command.program = bubblewrap;
    command.arguments = std::move(words);
    return command;
}

}  // namespace comfyd
