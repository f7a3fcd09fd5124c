// Whether the fleet takes a prompt, in ComfyUI's words. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/dialects/native/lookup.hpp"
#include "workflow/catalogue.hpp"
#include "workflow/prompt_rules.hpp"
#include "workflow/security.hpp"

namespace comfyd::api::native {

struct Judgement {
    workflow::PromptVerdict verdict;
    std::string requirement;  // of the workers, as in jobs::Spec
};

// Coerces the literals of the prompt in place. `targets`: nullptr: all outputs. `files`: inputs
// whose files the tenant has; others must be files of a worker. What `policy` forbids is refused
// before anything else.
Judgement judge(
    const workflow::Catalogue& catalogue,
    json::object& prompt,
    const std::vector<std::string>* targets,
    const std::vector<FileReference>& files,
    const workflow::SecurityPolicy& policy,
    std::string_view pool  // whose workers alone may run it; empty: any
);

// A refusal in ComfyUI's form for what it does not know of itself. `issues` holds at least one.
Judgement refuse_for(
    const std::vector<workflow::Issue>& issues, std::string_view type, std::string_view message
);

}  // namespace comfyd::api::native
