// The part of validation that looks at one input alone: ComfyUI's coercion, limits and choices.
#pragma once

#include <optional>
#include <string_view>

#include "engine/node.hpp"

namespace comfyd::engine {

struct InputSubject {
    const NodeClass& node;
    const Input& input;
    json::value& value;  // in the prompt
    const Folders& folders;
};

// {type, message, details, extra_info}
json::object make_error(
    std::string_view type,
    std::string_view message,
    std::string_view details,
    json::object extra_info
);
// What the extra_info of every error about an input begins with.
json::object input_facts(const InputSubject& subject);

// Coerces the literal in place; the error that ComfyUI reports for it, if any.
std::optional<json::object> judge_literal(const InputSubject& subject);

}  // namespace comfyd::engine
