// The part of judging a prompt that looks at one input alone: ComfyUI's coercion, limits and
// choices, and whether the type of a link fits. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "base/json.hpp"
#include "workflow/catalogue/definition.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// What would be a Python exception in ComfyUI's own validation.
struct Raised {
    std::string type;
    std::string text;
};

struct InputSubject {
    const NodeDefinition& node;
    const InputDefinition& input;
    json::value& value;  // in the prompt
    const OwnCheck* own_check = nullptr;
    const PromptOptions& options;
    bool told = false;   // of which inputs own_check is
    bool brief = false;  // leave out of errors what can be long
};

using InputFinding = tl::expected<std::optional<json::object>, Raised>;

// What the extra_info of every error about an input begins with.
json::object input_facts(const InputSubject& subject);
// A number that JSON cannot say becomes the text that means it to Python.
json::value json_safe(const json::value& from);

// Coerces the literal in place; the error that ComfyUI reports for it, if any.
InputFinding judge_literal(const InputSubject& subject);

// The error for a link whose type does not fit, if any.
std::optional<json::object> judge_type(const InputSubject& subject, const json::value& received);
std::string type_text(const json::value& type);

}  // namespace comfyd::workflow
