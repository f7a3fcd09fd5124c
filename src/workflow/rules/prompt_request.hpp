// The body of ComfyUI's POST /prompt: what it holds, and what the server decides before it looks at
// the prompt itself. Pure; any thread.
//
// Where the real server answers 500 to a body that is malformed, this says what is wrong: the
// error has ComfyUI's form {type, message, details, extra_info} and belongs into a 400 answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/json.hpp"

namespace comfyd::workflow {

struct PromptRequest {
    json::object prompt;
    std::optional<std::string> prompt_id;  // a canonical UUID; nullopt: the server makes one
    std::string client_id;                 // as text; empty: none
    // Smaller runs first. nullopt: the server counts, downwards where `front` is set.
    std::optional<double> number;
    bool front = false;
    json::object extra_data;  // with client_id, as given, where there is one
    // partial_execution_targets, those that are nodes of the prompt. nullopt: all outputs.
    std::optional<std::vector<std::string>> targets;
};

// JSON as Python reads it: NaN and Infinity are numbers. Where they are inputs of a node they come
// as such; elsewhere they are null.
tl::expected<json::value, json::object> read_prompt_body(std::string_view text);

tl::expected<PromptRequest, json::object> parse_prompt_request(json::value body);

// A UUID as Python writes it.
bool is_canonical_uuid(std::string_view text);

}  // namespace comfyd::workflow
