// How a ComfyUI is started: on loopback alone, with folders of its own, with an environment that
// has no secret in it, and confined. Blocks (it looks at the disk): for a start.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/sandbox.hpp"

namespace comfyd::agent {

struct CommandOptions {
    std::filesystem::path comfyui;  // the folder of its main.py
    std::string python = "python3";
    std::filesystem::path folder;          // of this instance; all that ComfyUI writes is below it
    std::filesystem::path node_pack{};     // installed for it; empty: none
    bool has_packs = false;                // others come into packs_of() before it starts
    std::vector<std::string> arguments{};  // further ones of ComfyUI's
    std::vector<std::string> environment{};  // names that it may see beside the usual ones
    SandboxLevel sandbox = SandboxLevel::minimal;
    std::vector<std::filesystem::path> readable{};  // by the sandbox, beside its own
    std::vector<std::filesystem::path> writable{};
};

// Makes the folders, and looks whether there is something to start. Code::config_invalid,
// Code::storage_unavailable.
Result<> prepare(const CommandOptions& options);

// Where the packs lie that this ComfyUI alone is to have. The agent's: what was there before goes.
std::filesystem::path packs_of(const CommandOptions& options);

// Code::config_invalid: the sandbox is not to be had.
Result<ChildCommand> comfyui_command(
    const CommandOptions& options, std::uint16_t port, const SandboxSupport& support
);

// Of "NAME=value" lines those that a program with a GPU needs, and `more` by name. None whose name
// speaks of a secret, unless it is in `more`.
std::vector<std::string> clean_environment(
    const std::vector<std::string>& all, const std::vector<std::string>& more
);
std::vector<std::string> own_environment();

// A port of 127.0.0.1 that nobody uses now: `wanted`, or another one. 0: there is none.
std::uint16_t free_port(std::uint16_t wanted);

}  // namespace comfyd::agent
