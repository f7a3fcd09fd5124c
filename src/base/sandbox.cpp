#include "base/sandbox.hpp"

#include <unistd.h>

#include <system_error>
#include <utility>

namespace comfyd {
namespace {

namespace fs = std::filesystem;

void add(std::vector<std::string>& to, std::initializer_list<std::string> words) {
    to.insert(to.end(), words);
}

std::vector<std::string> order_of(
    const ChildCommand& command, const SandboxNeeds& needs, SandboxLevel level
) {
    const bool is_inside = level == SandboxLevel::strict;
    std::vector<std::string> words{"sandbox", "enter"};
    add(words, {"--parent", std::to_string(is_inside ? kBubblewrapParent : ::getpid())});
    add(words, {"--level", std::string(to_string(level))});
    add(words, {"--network", std::string(to_string(needs.network))});
    add(words, {"--memory-bytes", std::to_string(needs.memory_bytes_max)});
    add(words, {"--cpu-seconds", std::to_string(needs.cpu_seconds_max)});
    add(words, {"--open-files", std::to_string(needs.open_files_max)});
    add(words, {"--processes", std::to_string(needs.processes_max)});
    if (needs.gpu) {
        add(words, {"--gpu"});
    }
    for (const fs::path& path : needs.readable) {
        add(words, {"--read", path});
    }
    for (const fs::path& path : needs.writable) {
        add(words, {"--write", path});
    }
    if (!needs.scratch.empty()) {
        add(words, {"--write", is_inside ? "/tmp" : needs.scratch.string()});
    }
    add(words, {"--", command.program});
    words.insert(words.end(), command.arguments.begin(), command.arguments.end());
    return words;
}

Result<> make_absolute(std::vector<fs::path>& paths) {
    for (fs::path& path : paths) {
        std::error_code error;
        const fs::path real = fs::canonical(path, error);
        if (error) {
            return fail(
                Code::invalid_argument,
                "a sandbox cannot have '" + path.string() + "': " + error.message()
            );
        }
        path = real;
    }
    return {};
}

}  // namespace

std::string_view to_string(SandboxLevel level) {
    switch (level) {
        case SandboxLevel::minimal:
            return "minimal";
        case SandboxLevel::basic:
            return "basic";
        case SandboxLevel::strict:
            break;
    }
    return "strict";
}

std::string_view to_string(SandboxNetwork network) {
    switch (network) {
        case SandboxNetwork::none:
            return "none";
        case SandboxNetwork::serve:
            return "serve";
        case SandboxNetwork::all:
            break;
    }
    return "all";
}

SandboxLevel SandboxSupport::best() const {
    if (landlock == 0 || !seccomp) {
        return SandboxLevel::minimal;
    }
    return bubblewrap.empty() ? SandboxLevel::basic : SandboxLevel::strict;
}

std::vector<std::string> SandboxSupport::missing(SandboxLevel level) const {
    std::vector<std::string> words;
    if (level >= SandboxLevel::basic && landlock == 0) {
        words.emplace_back("Landlock (Linux 5.13, and in the kernel's list of security modules)");
    }
    if (level >= SandboxLevel::basic && !seccomp) {
        words.emplace_back("seccomp filters");
    }
    if (level >= SandboxLevel::strict && bubblewrap.empty()) {
        words.emplace_back("bubblewrap: " + problem);
    }
    return words;
}

std::string SandboxSupport::missing_text(SandboxLevel level) const {
    std::string text;
    for (const std::string& word : missing(level)) {
        text += (text.empty() ? "" : "; ") + word;
    }
    return text;
}

fs::path own_program() {
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error);
}

Result<ChildCommand> sandboxed(
    ChildCommand command,
    const SandboxNeeds& needs,
    SandboxLevel level,
    const SandboxSupport& support
) {
    if (const std::string missing = support.missing_text(level); !missing.empty()) {
        return fail(
            Code::invalid_argument,
            "the sandbox level '" + std::string(to_string(level)) +
                "' is not to be had on this system, which lacks " + missing
        );
    }
    SandboxNeeds found = needs;
    const fs::path self = own_program();
    for (auto* paths : {&found.readable, &found.writable}) {
        if (auto made = make_absolute(*paths); !made) {
            return fail(std::move(made.error()));
        }
    }
    if (level == SandboxLevel::strict) {
        found.readable.push_back(self);
    }
    const std::string home =
        level == SandboxLevel::strict ? std::string("/tmp") : needs.scratch.string();
    if (!needs.scratch.empty()) {
        add(command.environment, {"HOME=" + home, "TMPDIR=" + home});
    }
    command.arguments = order_of(command, found, level);
    command.program = self;
    return level == SandboxLevel::strict
               ? in_bubblewrap(std::move(command), found, support.bubblewrap)
               : std::move(command);
}

}  // namespace comfyd
