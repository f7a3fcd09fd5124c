// The steps that every submit shares, whatever the dialect: decode, check the workflow and its
// assets, and hand the job to the service.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "api/router.hpp"
#include "api/services.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

// What a dialect decoded from its request; submit() fills in the rest of the Spec (tenant,
// requirement, hashes).
struct Submission {
    // Without workflow, node_count, tenant and request_hash; of the requirement only the pool.
    jobs::Spec spec;
    json::object workflow;    // API format, the editor's save format, or a wrapper around either
    json::object parameters;  // as for workflow::bind_parameters(), may be empty
    // A deadline that is counted from now: unlike spec.deadline it is the same in a repeated
    // request.
    std::optional<Millis> time_to_live{};
    // False where the dialect's contract refuses the editor's save format
    // (Code::workflow_format_ui).
    bool converts_editor_format = true;
    // Put right what is plainly a slip; what was done follows the spec's own warnings, and all are
    // kept as dialect_data["warnings"].
    bool auto_fix = false;
    // Not empty: what was asked for, where the workflow was found by a name. Requests with the same
    // idempotency key are told from each other by this, for the name may mean another one by now.
    json::object request{};
    // Where the workflow is to be had, in the place of it, and the field that says so; as
    // take_workflow() finds them.
    std::string workflow_source{};
    std::string workflow_field{};
};

// Reads and parses the JSON body, of at most `bytes_max` bytes where the dialect has a limit below
// that of the server. Code::malformed_json, Code::payload_too_large, Code::invalid_argument.
Task<Result<json::object>> read_json_body(
    Call& call,
    const Services& services,
    std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max()
);

// What the editor itself would send of its save format. All failures of workflow::convert_ui().
Result<json::object> convert_editor_format(
    const json::object& graph, const workflow::Catalogue& catalogue, Time now
);

// The job that an earlier request with the same idempotency key made, for those who fetch files
// before they submit: `submission.request` says what was asked for. nullopt: there is none.
// Code::idempotency_key_reuse.
Task<Result<std::optional<jobs::Submitted>>> find_replay(
    const Call& call, const Services& services, const Submission& submission
);

// Checks, fetches the files that it names by address or content, and submits. All failures of
// workflow::bind_parameters, workflow::check_security and workflow::check, those of fetch_inputs()
// and inputs_error(), Code::missing_asset, and those of jobs::Service::submit. Seeds that were
// chosen for "random" are kept as dialect_data["chosen_parameters"]. A request whose idempotency
// key has led to a job before fetches nothing.
Task<Result<jobs::Submitted>> submit(
    const Call& call, const Services& services, Submission submission
);

// The members that several dialects share, typed and bounded: priority, class, fairness_key,
// timeout (seconds), deadline (RFC 3339), max_attempts, metadata, reuse, callback_url / webhook_url
// / webhook_config / header X-Webhook-URL, header Idempotency-Key.
Result<> decode_common(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
);

// What is asked for about the job's turn beside its priority: the members fairness_key and class
// ("batch"), or where they are missing the headers X-Comfyd-Fairness-Key and X-Comfyd-Class. Part
// of decode_common(). Code::invalid_argument.
Result<> decode_turn(const Call& call, const json::object& from, jobs::Spec& spec);

// The pool whose workers alone may run the job: the member "pool", or where that is missing the
// header X-Comfyd-Pool, or else the tenant's; empty: any. Part of decode_common(), which lets the
// spec's requirement begin with it. Code::invalid_argument names those that there are.
Result<std::string> decode_pool(
    const Call& call, const Services& services, const json::object& from
);

// Header Idempotency-Key; empty: none. Code::invalid_argument.
Result<std::string> decode_idempotency_key(const Call& call);

// "http://host:port" for absolute links.
std::string base_url(const net::Request& request, const ApiOptions& options);

// An asset's download link, absolute, with its expiry.
struct Download {
    std::string url;
    Time expires_at;
};
Download download_link(const AssetId& id, const net::Request& request, const Services& services);

}  // namespace comfyd::api
