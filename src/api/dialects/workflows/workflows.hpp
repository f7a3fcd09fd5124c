// The asynchronous workflows API: /v1/workflows/… (deprecated) and /v2/workflows/…, which differ in
// nothing but the headers that say so. Submit, status, list, cancel, retry, metrics, Server-Sent
// Events and WebSocket. The decoding is here as free functions for tests. `services` outlives the
// router.
#pragma once

#include <string>
#include <string_view>

#include "api/dialects/execution/execution.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"

namespace comfyd::api {

void add_workflows(Router& router, const Services& services);

namespace workflows {

struct Version {
    std::string_view prefix;  // "/v1"
    std::string_view number;  // "1.0"
    bool deprecated = false;
};
inline constexpr Version kV1{"/v1", "1.0", true};
inline constexpr Version kV2{"/v2", "2.0", false};

using execution::Decoded;
Result<Decoded> decode_request(json::object body, const Version& version);
// All of it but the workflow and its inputs.
Result<Decoded> decode_options(const json::object& body, const Version& version);

// Submits and answers 202 with the execution; with ?wait=, 200 once it has ended within so many
// seconds.
Task<> submit_and_answer(
    Call& call, const Services& services, const Version& version, Submission submission
);

// X-API-Version, and for a deprecated version Deprecation and a Link to its successor. `path` is
// the request's; empty when it is not known.
void add_version_headers(net::Headers& headers, const Version& version, std::string_view path);
// {"error":{…}}
net::Response error_response(
    const Error& error, Time now, const Version& version, std::string_view path
);

json::object operation_execute(const Version& version);
json::object operation_get(const Version& version);
json::object operation_list(const Version& version);
json::object operation_cancel(const Version& version);
json::object operation_delete(const Version& version);
json::object operation_retry(const Version& version);
json::object operation_metrics(const Version& version);
json::object operation_explain(const Version& version);
json::object operation_events(const Version& version);
json::object operation_socket(const Version& version);
json::object schemas();

}  // namespace workflows
}  // namespace comfyd::api
