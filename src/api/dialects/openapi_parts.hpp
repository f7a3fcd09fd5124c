// What the OpenAPI descriptions of the workflows API share: answers, parameters and options that
// several routes have. Pure; any thread.
#pragma once

#include <string_view>

#include "base/json.hpp"

namespace comfyd::api::openapi {

// An operation from a literal with short forms:
//   "parameters": ["limit", "If-Match"]      those that several routes have, by name
//   "responses": {"200": ["What.", "Name"]}  an answer in JSON with this schema; one with more to
//                                            say is {"description": …, "schema": "Name", …}
//   "responses": {"409": ["Why."]}           a refusal
//   "requestBody": "Name"                    JSON with this schema; {"workflow": "Name"} may also
//                                            be a file with the workflow in it, or a form
// and the answer for everything else that can go wrong.
json::object operation(std::string_view id, std::string_view tag, std::string_view text);

// Properties of what a request may say beside its workflow and parameters.
json::object execution_options();
// Of the member that is a workflow, or says where it is to be had.
json::object workflow_property(std::string_view description);

}  // namespace comfyd::api::openapi
