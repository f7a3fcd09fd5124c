// Where the workflow of a request comes from: an object of its body, a picture or a file that holds
// it, or a text that says where such a file is to be had ("https://…", "data:image/png;base64,…",
// "asset:<id>", "blake3:<hash>"), by the rules of admission/inputs.hpp. For every dialect; runs on
// the connection's executor.
#pragma once

#include <string>
#include <string_view>

#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"

namespace comfyd::api {

// Reads a request whose body is, or holds, a workflow, as an object with a member "workflow":
//   JSON                        as it is
//   image/*, octet-stream       a file with a workflow in it; what else a JSON body might say
//                               (priority, pool, auto_fix …) stands in the query
//   multipart/form-data         "workflow" is the file, or a text as in the JSON member; the other
//                               parts are members, as JSON or else as text
// Failures of read_json_body() and workflow::read_workflow_file().
Task<Result<json::object>> read_workflow_body(Call& call, const Services& services);
// The content type is one of those for which read_workflow_body() reads a file.
bool is_workflow_file(const net::Request& request);

// Takes a member that must be a workflow: the object itself, with the links that stand beside its
// nodes put in place, or where it is to be had. `field` is the name for errors.
// Code::invalid_argument, Code::invalid_workflow.
Result<> take_workflow(
    json::object& body, std::string_view member, std::string_view field, Submission& into
);

// Puts the workflow in the place of a member that says where it is to be had; others stay.
Task<Result<>> open_workflow(
    const Call& call, const Services& services, json::object& body, std::string member
);

}  // namespace comfyd::api
