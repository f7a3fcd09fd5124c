// What `comfyd serve --comfyui DIR` means: a pool of processes that fill the GPUs of this computer,
// and the provider that has them. What is wrong with the settings is found here, before anything is
// started, and the message says how to mend it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fleet/providers/process.hpp"

namespace comfyd::fleet {

struct LocalSettings {
    std::string dir{};                     // the folder of ComfyUI's main.py
    std::string python{};                  // empty: of a virtual environment in it, else python3
    std::vector<std::string> arguments{};  // further ones of ComfyUI
    // UUIDs or numbers of GPUs as nvidia-smi has them; empty: all. "any": ComfyUI finds one itself.
    std::vector<std::string> gpus{};
    int per_gpu = 1;
    int gpu_memory_mb = 0;  // that each may need; 0: a share
    int port_first = 8'188;
    int port_last = 8'288;
    int recycle_jobs = 0;    // a ComfyUI is begun anew after so many; 0: never; likewise the next
    int recycle_ram_mb = 0;  // with so much memory of the computer
    std::string sandbox{};   // how ComfyUI is confined; empty: as the agent does it
    std::vector<std::string> readable{};  // beside its own, where it is
    std::vector<std::string> writable{};
    std::vector<std::string> packs{};  // "https://…@COMMIT" or a folder
    std::vector<std::string> packs_allowed{};
};

// From texts by name, lists separated by commas: dir, python, arguments, gpus, per_gpu,
// gpu_memory_mb, ports ("8188-8288"), recycle_jobs, recycle_ram_mb, sandbox, readable, writable,
// packs, packs_allowed. Code::config_invalid names the one that is wrong.
Result<LocalSettings> read_local_settings(const std::map<std::string, std::string>& texts);

struct LocalPool {
    ProcessOptions provider{};
    int size = 0;  // places there are
};

// `folder`: where the machines shall be. Blocks: for a start. Code::config_invalid.
Result<LocalPool> local_pool(
    const LocalSettings& settings, const std::filesystem::path& folder, const GpuSources& gpus = {}
);

}  // namespace comfyd::fleet
