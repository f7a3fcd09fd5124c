// Whether the fleet takes a prompt, in ComfyUI's words. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/dialects/native/context.hpp"
#include "workflow/catalogue.hpp"
#include "workflow/issue.hpp"
#include "workflow/named_files.hpp"
#include "workflow/prompt_rules.hpp"
#include "workflow/security.hpp"

namespace comfyd::api::native {

struct Judgement {
    workflow::PromptVerdict verdict;
    std::string requirement;  // of the workers, as in jobs::Spec
};

// Coerces the literals of the prompt in place. `targets`: nullptr: all outputs. `missing`: files
// that neither the tenant nor a worker has. What `policy` forbids is refused before anything else.
Judgement judge(
    const workflow::Catalogue& catalogue,
    json::object& prompt,
    const std::vector<std::string>* targets,
    const std::vector<workflow::MissingFile>& missing,
    const workflow::SecurityPolicy& policy,
    std::string_view pool  // whose workers alone may run it; empty: any
);

// A refusal in ComfyUI's form for what it does not know of itself. `issues` holds at least one.
Judgement refuse_for(
    const std::vector<workflow::Issue>& issues, std::string_view type, std::string_view message
);

}  // namespace comfyd::api::native
