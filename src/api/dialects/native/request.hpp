// The body of POST /prompt, for all routes that take one: read, with the editor's save format as
// what the editor would send of it, and handed to admission.
#pragma once

#include "admission/submission.hpp"
#include "api/dialects/native/context.hpp"
#include "workflow/rules/prompt_request.hpp"

namespace comfyd::api::native {

// As workflow::parse_prompt_request(). Where the body, or the prompt in it, is in the editor's save
// format, it is taken as what the editor would send of it.
tl::expected<workflow::PromptRequest, json::object> read_request(
    json::value body, const workflow::Catalogue& catalogue, Time now
);

// How large the body of such a request may be: one that is a picture may be larger.
std::uint64_t prompt_bytes_max(const Call& call, const Services& services);
// The body of such a request: JSON, or with the content type of a picture one that holds the
// prompt; a prompt that says where it is to be had is fetched. An answer in ComfyUI's form where
// that cannot be read.
Task<tl::expected<json::value, json::object>> decode_body(
    Call& call, const Services& services, std::string text
);

// extra_data["comfyd"], what comfyd is told beyond ComfyUI's own words; an empty object without it.
const json::object& own_options(const json::object& extra_data);

// The prompt as admission takes it. What its options say of pool, turn and reuse is for the caller
// to decode.
admission::Submission make_submission(
    const Call& call,
    workflow::PromptRequest request,
    std::shared_ptr<const workflow::Catalogue> catalogue  // that it was read with
);

}  // namespace comfyd::api::native
