// How an agent of a process on this computer is started. Pure, but for the environment that it is
// given a part of.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/child_process.hpp"
#include "fleet/providers/process.hpp"
#include "fleet/providers/process_record.hpp"

namespace comfyd::fleet {

// The path of a socket has a limit of the system's.
bool has_room_for_socket(const std::filesystem::path& folder);
// Where the agent listens, as it is told: "unix:/path", "127.0.0.1:8189".
std::string agent_address(const std::filesystem::path& folder, const ProcessRecord& record);
// As whoever calls it writes it: "unix:/path", "http://127.0.0.1:8189".
std::string agent_url(const std::filesystem::path& folder, const ProcessRecord& record);

// Where packs of custom nodes stay that one of the agents fetched.
std::filesystem::path packs_folder(const ProcessOptions& options);

ChildCommand agent_command(
    const ProcessOptions& options,
    const ProcessRecord& record,
    const std::map<std::string, std::string>& secrets
);

}  // namespace comfyd::fleet
