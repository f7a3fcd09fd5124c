#include "agent/comfyui_command.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/disk.hpp"
#include "base/find_program.hpp"
#include "base/json.hpp"
#include "base/secret_names.hpp"
#include "net/descriptor.hpp"

extern char** environ;

namespace comfyd::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kFolders{"output", "temp", "input", "user"};

// What says how to compute and where things are.
constexpr std::array<std::string_view, 16> kNames{
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "HF_HOME",
    "XDG_CACHE_HOME",
    "CONDA_PREFIX",
    "CC",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
};
constexpr std::array<std::string_view, 15> kPrefixes{
    "CUDA_",
    "CUDNN_",
    "NVIDIA_",
    "PYTORCH_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TRITON_",
    "PYTHON",
    "HIP_",
    "ROCR_",
    "HSA_",
    "OMP_",
    "MKL_",
    "NCCL_",
    "COMFYUI_",
};

bool is_usual(std::string_view name) {
    const bool is_known = std::ranges::find(kNames, name) != kNames.end() ||
                          std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
                              return name.starts_with(prefix);
                          });
    return is_known && !names_secret(name);
}

tl::unexpected<Error> wrong(std::string message) {
    return fail(Code::config_invalid, std::move(message));
}

// A link in ComfyUI's own folder would show the pack to every other instance, too; ComfyUI takes
// further folders of nodes from a file.
Result<> install_pack(const CommandOptions& options) {
    const fs::path nodes = options.folder / "custom_nodes";
    std::error_code error;
    fs::create_directories(nodes, error);
    const fs::path link = nodes / fs::absolute(options.node_pack).filename();
    fs::remove(link, error);
    fs::create_directory_symlink(fs::absolute(options.node_pack), link, error);
    if (error) {
        return fail(
            Code::storage_unavailable,
            "the node pack cannot be installed at '" + link.string() + "': " + error.message()
        );
    }
    return {};
}

std::string extra_paths_of(const CommandOptions& options) {
    return options.folder / "node_pack_paths.yaml";
}

bool has(const std::vector<std::string>& arguments, std::string_view flag) {
    return std::ranges::any_of(arguments, [&](const std::string& word) {
        return word == flag || word.starts_with(std::string(flag) + "=");
    });
}

SandboxNeeds needs_of(const CommandOptions& options, const std::string& python) {
    SandboxNeeds needs;
    needs.readable = {options.comfyui};
    // The folder of a virtual environment, whose program is a link to the system's.
    const fs::path prefix = fs::path(python).parent_path().parent_path();
    if (prefix != "/usr" && prefix != "/" && prefix != "/usr/local") {
        needs.readable.push_back(prefix);
    }
    if (!options.node_pack.empty()) {
        needs.readable.push_back(options.node_pack);
    }
    needs.readable.insert(needs.readable.end(), options.readable.begin(), options.readable.end());
    needs.writable = {options.folder};
    needs.writable.insert(needs.writable.end(), options.writable.begin(), options.writable.end());
    // It must be reached, and its nodes fetch models.
    needs.network = SandboxNetwork::all;
    needs.gpu = !gpu_devices().empty();
    return needs;
}

}  // namespace

std::vector<std::string> clean_environment(
    const std::vector<std::string>& all, const std::vector<std::string>& more
) {
    std::vector<std::string> chosen;
    for (const std::string& line : all) {
        const std::string_view name = std::string_view(line).substr(0, line.find('='));
        // What is ours is for us alone, whoever asks for it.
        const bool is_ours = name.starts_with("COMFYD_");
        const bool is_wanted = std::ranges::find(more, name) != more.end();
        if (!is_ours && (is_wanted || is_usual(name))) {
            chosen.push_back(line);
        }
    }
    return chosen;
}

std::vector<std::string> own_environment() {
    std::vector<std::string> lines;
    for (char** line = environ; *line != nullptr; ++line) {
        lines.emplace_back(*line);
    }
    return lines;
}

fs::path packs_of(const CommandOptions& options) {
    return options.folder / "comfyd_nodes";
}

Result<> prepare(const CommandOptions& options) {
    std::error_code error;
    if (!fs::is_regular_file(options.comfyui / "main.py", error)) {
        return wrong(
            "--comfyui: there is no main.py in '" + options.comfyui.string() +
            "'; name the folder that ComfyUI was unpacked to"
        );
    }
    if (find_program(options.python).empty()) {
        return wrong("--python: '" + options.python + "' is no program that can be run");
    }
    for (const char* flag : {"--listen", "--port", "--tls-keyfile", "--tls-certfile"}) {
        if (has(options.arguments, flag)) {
            return wrong(
                std::string(flag) +
                " is not yours to say: ComfyUI listens on loopback alone, for the agent in front"
            );
        }
    }
    for (const std::string_view name : kFolders) {
        fs::create_directories(options.folder / name, error);
        if (error) {
            return fail(
                Code::storage_unavailable,
                "'" + (options.folder / name).string() + "' cannot be made: " + error.message()
            );
        }
    }
    // What an earlier agent had there is not of this one.
    fs::remove_all(packs_of(options), error);
    std::string folders;  // ComfyUI wants each to be there
    if (!options.node_pack.empty()) {
        if (!fs::is_directory(options.node_pack, error)) {
            return wrong("--node-pack: '" + options.node_pack.string() + "' is no folder");
        }
        if (auto installed = install_pack(options); !installed) {
            return installed;
        }
        folders = (options.folder / "custom_nodes").string() + "\n";
    }
    if (options.has_packs) {
        fs::create_directories(packs_of(options), error);
        folders += packs_of(options).string() + "\n";
    }
    return folders.empty()
               ? Result<>()
               : write_file(
                     extra_paths_of(options),
                     "comfyd:\n  custom_nodes: " + json::serialize(json::value(folders)) + "\n"
                 );
}

Result<ChildCommand> comfyui_command(
    const CommandOptions& options, std::uint16_t port, const SandboxSupport& support
) {
    const std::string found = find_program(options.python);
    if (found.empty()) {
        return wrong("'" + options.python + "' is no program that can be run");
    }
    const std::string python = fs::absolute(found);
    ChildCommand command;
    command.name = "ComfyUI";
    command.program = python;
    command.arguments = {
        fs::absolute(options.comfyui / "main.py"),
        "--listen",
        "127.0.0.1",
        "--port",
        std::to_string(port),
        "--disable-auto-launch",
    };
    for (const std::string_view name : kFolders) {
        command.arguments.push_back("--" + std::string(name) + "-directory");
        command.arguments.push_back(options.folder / name);
    }
    if (!has(options.arguments, "--database-url")) {
        command.arguments.emplace_back("--database-url");
        command.arguments.push_back(
            "sqlite:///" + (options.folder / "user" / "comfyui.db").string()
        );
    }
    if (!options.node_pack.empty() || options.has_packs) {
        command.arguments.emplace_back("--extra-model-paths-config");
        command.arguments.push_back(extra_paths_of(options));
    }
    command.arguments.insert(
        command.arguments.end(), options.arguments.begin(), options.arguments.end()
    );
    command.environment = clean_environment(own_environment(), options.environment);
    // Its lines come when they are printed, not when a buffer is full.
    command.environment.emplace_back("PYTHONUNBUFFERED=1");
    auto confined =
        sandboxed(std::move(command), needs_of(options, python), options.sandbox, support);
    if (!confined) {
        return wrong(confined.error().message);
    }
    return confined;
}

std::uint16_t free_port(std::uint16_t wanted) {
    for (const std::uint16_t port : {wanted, std::uint16_t{0}}) {
        const net::Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int yes = 1;
        ::setsockopt(probe.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* name = reinterpret_cast<sockaddr*>(&address);
        // Listening, too: another may be bound there and not listen yet.
        if (::bind(probe.number(), name, size) == 0 && ::listen(probe.number(), 1) == 0 &&
            ::getsockname(probe.number(), name, &size) == 0) {
            return ntohs(address.sin_port);
        }
    }
    return 0;
}

}  // namespace comfyd::agent
