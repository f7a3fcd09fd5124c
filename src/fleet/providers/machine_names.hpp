// What machines and their GPUs are called, the same way for all providers. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/gpu_name.hpp"
#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

// Whether a machine's name is comfyd-{fleet}-{instance}. A fleet's name may have hyphens, so that
// of the instance may not, unless it is a UUID: comfyd-a-b-1 is of the fleet "a-b" and never of
// "a".
bool is_of_fleet(std::string_view name, std::string_view fleet);

// The place of a GPU among those wished for, by any of its names; nullopt: it is none of them.
// Where nothing is wished for everything is first.
std::optional<std::size_t> place_of_gpu(
    const std::vector<std::string>& wished, const std::vector<std::string>& names
);

// What the agent is told in its environment: the template's variables, then `secrets`, then where
// it listens (SERVER_HOST, SERVER_PORT) and whose it is (COMFYD_FLEET, COMFYD_POOL,
// COMFYD_INSTANCE).
std::map<std::string, std::string> environment_of(const MachineOrder& order);

// Its secrets, for whoever must not repeat them.
std::vector<std::string> secrets_of(const MachineOrder& order);

// For machines whose port the whole world can reach: their agent must ask for a token, or ComfyUI,
// which asks for none, would be everybody's. Code::invalid_argument.
Result<> check_public_order(const MachineOrder& order);

// Where an agent is reached: "https://{id}-{port}.{region}.example.com" with what stands for each
// name. Nullopt where that is no part of a host's name: tokens go there.
std::optional<std::string> agent_url(
    std::string_view pattern,
    const std::string& id,
    const std::string& port,
    const std::string& region = {}
);

// A command as one line of a shell.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace comfyd::fleet
