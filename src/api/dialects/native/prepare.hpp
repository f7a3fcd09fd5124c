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

// The body of such a request: JSON, or with the content type of a picture one that holds the
// prompt; a prompt that says where it is to be had is fetched. An answer in ComfyUI's form where
// that cannot be read; fails where the request itself cannot.
Task<Result<tl::expected<json::value, json::object>>> read_body(
    Call& call, const Services& services
);

// extra_data["comfyd"], what comfyd is told beyond ComfyUI's own words; an empty object without it.
const json::object& own_options(const json::object& extra_data);

// Judges the prompt and, where it is good, puts references to files in the place of their names.
// Fails only where the server itself is to blame.
Task<Result<Judgement>> prepare(
    const Call& call, Context& context, workflow::PromptRequest& request
);

}  // namespace comfyd::api::native
