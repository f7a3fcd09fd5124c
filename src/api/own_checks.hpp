// The checks of a prompt that classes make themselves, as a worker makes them before anything is
// queued.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/services.hpp"

namespace comfyd::api {

// nullopt: nothing in the prompt needs it, or no worker can say; it is judged when it runs then.
// `targets`: empty: all outputs.
Task<std::optional<workflow::PromptVerdict>> ask_own_checks(
    const Services& services,
    const workflow::Catalogue& catalogue,
    const json::object& prompt,
    std::vector<std::string> targets,
    std::string requirement
);

// The same where every finding is a refusal, as for workflow::check().
Task<Result<>> pass_own_checks(
    const Services& services,
    const workflow::Catalogue& catalogue,
    const json::object& prompt,
    std::vector<std::string> targets,
    std::string requirement
);

}  // namespace comfyd::api
