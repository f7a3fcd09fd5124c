// What is written down of a machine that is a process of this computer, and where. Its folder:
//
//   machine.json   this record; written before anything is started, removed last
//   secrets        what its agent is told and nobody else may read
//   agent.log      what the agent printed
//   agent.sock     where the agent listens, unless on a port
//   work/          the agent's own folder: all that ComfyUI may write; beside what the agent puts
//                  there nodes/, the custom nodes that it has beside the operator's, and
//                  nodes.yaml, which tells it so
//
// ComfyUI runs code of strangers, so nothing in work/ is believed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/processes.hpp"
#include "base/time.hpp"

namespace comfyd::fleet {

struct ProcessRecord {
    std::string name;
    std::string fleet;
    std::string instance;
    std::string pool;
    std::string gpu{};               // its UUID; empty: none was given to it
    std::uint64_t memory_bytes = 0;  // that it was promised there; 0: a share
    int per_gpu = 0;                 // that may share it; 0: as the settings say
    bool hides_gpus = false;         // it shall use none
    int port = 0;                    // of the agent; 0: it has a socket
    int comfyui_port = 0;
    std::vector<std::string> arguments{};  // further ones of ComfyUI
    std::map<std::string, std::string> environment{};
    Time made_at{};
    // The agent; pid 0: it was not started yet.
    ProcessMark agent{};
    std::string boot{};       // of the computer: marks are told apart within one only
    std::string cgroup{};     // that its processes are in; empty: none
    bool is_stopped = false;  // by stop()
};

// How a machine may be called: what is a name of one folder and of nothing else.
bool is_machine_name(std::string_view name);

// Of the machine's folder. Code::not_found, Code::malformed_json, Code::invalid_argument.
Result<ProcessRecord> read_record(const std::filesystem::path& folder);
Result<> write_record(const std::filesystem::path& folder, const ProcessRecord& record);

// As "NAME=value" lines would be, but for any text. Nobody but the user may read it.
Result<std::map<std::string, std::string>> read_secrets(const std::filesystem::path& folder);
Result<> write_secrets(
    const std::filesystem::path& folder, const std::map<std::string, std::string>& secrets
);

// Of this start of the computer.
std::string this_boot();

// The agent says in its own folder that it is there. Believed only where it names the process that
// we started, and only that far.
bool agent_is_up(const std::filesystem::path& folder, const ProcessRecord& record);

}  // namespace comfyd::fleet
