// The checks of a prompt that classes make themselves, as a worker makes them before anything is
// queued.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "admission/desk.hpp"

namespace comfyd::admission {

// nullopt: nothing in the prompt needs it, or no worker can say; it is judged when it runs then.
// `targets`: empty: all outputs.
Task<std::optional<workflow::PromptVerdict>> ask_own_checks(
    const Desk& desk,
    const workflow::Catalogue& catalogue,
    const json::object& prompt,
    std::vector<std::string> targets,
    Requirement requirement
);

}  // namespace comfyd::admission
