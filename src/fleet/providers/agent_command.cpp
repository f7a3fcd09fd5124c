#include "fleet/providers/agent_command.hpp"

#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "fleet/providers/local_places.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

// What a program with a GPU needs to know of where it is. Nothing of comfyd's own, which may be
// secret.
constexpr std::array kPassedOn{
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "TORCH_HOME",
    "CUDA_HOME",
    "CUDA_CACHE_PATH",
    "PYTORCH_CUDA_ALLOC_CONF",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "ASAN_OPTIONS",
    "LSAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
};

fs::path socket_of(const fs::path& folder) {
    return folder / "agent.sock";
}

std::vector<std::string> environment_of(
    const ProcessOptions& options,
    const ProcessRecord& record,
    const std::map<std::string, std::string>& secrets
) {
    std::map<std::string, std::string> variables;
    for (const char* name : kPassedOn) {
        if (const char* value = std::getenv(name)) {
            variables[name] = value;
        }
    }
    for (const auto* more : {&options.environment, &record.environment, &secrets}) {
        for (const auto& [name, value] : *more) {
            variables[name] = value;
        }
    }
    variables["COMFYD_INSTANCE"] = record.instance;
    // One cache for all agents of this computer, which their ComfyUIs may not write into.
    variables.try_emplace("COMFYD_MODELS_CACHE", options.folder / "models");
    variables["COMFYD_PACKS_FOLDER"] = packs_folder(options);
    variables[kMachineVariable] = options.folder / record.name;
    if (!record.gpu.empty() || record.hides_gpus) {
        variables["CUDA_VISIBLE_DEVICES"] = record.gpu;
    }
    std::vector<std::string> lines;
    for (const auto& [name, value] : variables) {
        lines.push_back(name + "=" + value);
    }
    return lines;
}

}  // namespace

fs::path packs_folder(const ProcessOptions& options) {
    return options.folder / ".packs";
}

bool has_room_for_socket(const fs::path& folder) {
    return socket_of(folder).native().size() < sizeof(sockaddr_un::sun_path);
}

std::string agent_address(const fs::path& folder, const ProcessRecord& record) {
    return record.port == 0 ? "unix:" + socket_of(folder).string()
                            : "127.0.0.1:" + std::to_string(record.port);
}

std::string agent_url(const fs::path& folder, const ProcessRecord& record) {
    return (record.port == 0 ? "" : "http://") + agent_address(folder, record);
}

ChildCommand agent_command(
    const ProcessOptions& options,
    const ProcessRecord& record,
    const std::map<std::string, std::string>& secrets
) {
    const fs::path folder = options.folder / record.name;
    ChildCommand command{record.name, options.program, options.arguments, {}};
    const auto add = [&command](const std::vector<std::string>& words) {
        command.arguments.insert(command.arguments.end(), words.begin(), words.end());
    };
    add({"--listen", agent_address(folder, record), "--folder", folder / "work"});
    add({"--comfyui", options.comfyui, "--comfyui-port", std::to_string(record.comfyui_port)});
    if (!options.python.empty()) {
        add({"--python", options.python});
    }
    add(options.agent_arguments);
    add({"--", "--extra-model-paths-config", folder / "work" / "nodes.yaml"});
    if (record.hides_gpus) {
        add({"--cpu"});
    }
    add(options.comfyui_arguments);
    add(record.arguments);
    command.environment = environment_of(options, record, secrets);
    return command;
}

}  // namespace comfyd::fleet
