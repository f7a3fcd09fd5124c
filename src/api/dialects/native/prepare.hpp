// The way of a body of POST /prompt to a prompt that can be queued, for all routes that take one:
// the editor's save format is converted, the prompt is judged in ComfyUI's words, and the files
// that it names are found among the tenant's own or fetched.
#pragma once

#include "api/dialects/native/judge.hpp"
#include "workflow/prompt_request.hpp"

namespace comfyd::api::native {

// As workflow::parse_prompt_request(). Where the body, or the prompt in it, is in the editor's save
// format, it is taken as what the editor would send of it.
tl::expected<workflow::PromptRequest, json::object> read_request(
    json::value body, const Services& services
);

// Judges the prompt and, where it is good, puts references to files in the place of their names.
// Fails only where the server itself is to blame.
Task<Result<Judgement>> prepare(
    const Call& call, Context& context, workflow::PromptRequest& request
);

}  // namespace comfyd::api::native
