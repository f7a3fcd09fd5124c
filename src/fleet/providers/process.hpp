// Machines that are processes of this computer: `comfyd worker`, the agent, which starts a ComfyUI
// and stays beside it. Each has a folder and a place on a GPU; which there are is written in the
// folders (process_record.hpp). They lead sessions of their own and outlive this program; whoever
// comes after it finds them again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/packs.hpp"
#include "base/cgroup.hpp"
#include "base/gpus.hpp"
#include "base/task.hpp"
#include "fleet/providers/gpu_places.hpp"
#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct ProcessOptions {
    std::string name = "process";
    std::filesystem::path folder;  // each machine has one below it

    std::string program{};                         // the agent's; empty: this program
    std::vector<std::string> arguments{"worker"};  // before all others

    std::filesystem::path comfyui{};               // the folder of its main.py
    std::string python{};                          // empty: as the agent finds it
    std::vector<std::string> agent_arguments{};    // further ones of every agent
    std::vector<std::string> comfyui_arguments{};  // of every ComfyUI
    // Of every agent; a template's comes after it.
    std::map<std::string, std::string> environment{};
    std::vector<agent::NodePack> packs{};  // beside the operator's custom nodes and our own
    agent::PackRules pack_rules{};

    GpuSources gpus{};
    std::vector<std::string> gpus_used{};  // their UUIDs; empty: all
    std::vector<std::string> gpu_kinds{};  // "cpu" where there are none; empty: not known
    // ComfyUI finds what it computes with by itself, as with GPUs that are not NVIDIA's; the places
    // of one GPU are all there are.
    bool finds_gpu_itself = false;
    GpuSharing sharing{};

    // For ComfyUI, and for the agents where they do not listen on sockets.
    int port_first = 8'188;
    int port_last = 8'288;
    bool listens_on_sockets = true;

    // Where control groups are made for them, as far as that is allowed (base/cgroup.hpp).
    std::filesystem::path cgroups = kCgroupTree;

    // From SIGTERM to SIGKILL; an agent has 30 s for what runs.
    Millis grace{35'000};
    std::uint64_t log_bytes_max = 10'000'000;  // of an agent's; there are two files
};

// Has a pool of its own for what blocks: nothing of it waits for others or holds them up.
std::unique_ptr<MachineProvider> make_process_provider(Executor executor, ProcessOptions options);

}  // namespace comfyd::fleet
