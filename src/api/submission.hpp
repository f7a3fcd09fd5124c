// The steps that every submit shares, whatever the dialect: decode, let it be admitted
// (admission/admit.hpp), and hand the job to the service.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "admission/submission.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "jobs/job.hpp"

namespace comfyd::api {

using admission::Submission;

// Reads and parses the JSON body, of at most `bytes_max` bytes where the dialect has a limit below
// that of the server. Code::malformed_json, Code::payload_too_large, Code::invalid_argument.
Task<Result<json::object>> read_json_body(
    Call& call,
    const Services& services,
    std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max()
);

// Admits it for the caller, and submits. The errors of admission::admit() and those of
// jobs::Service::submit().
Task<Result<jobs::Submitted>> submit(
    const Call& call, const Services& services, Submission submission
);

// The tier that the caller's token names goes with its jobs: what they may take is judged by it.
void keep_tier(const Call& call, jobs::Spec& spec);

// Hands over a job that was admitted. Failures of jobs::Service::submit().
Task<Result<jobs::Submitted>> submit_admitted(
    const Call& call, const Services& services, jobs::Spec spec
);

// The members that several dialects share, typed and bounded: priority, class, fairness_key,
// timeout (seconds), deadline (RFC 3339), max_attempts, metadata, reuse, retention, output_config,
// callback_url / webhook_url / webhook_config / header X-Webhook-URL, header Idempotency-Key.
Result<> decode_common(
    const Call& call, const Services& services, const json::object& body, jobs::Spec& spec
);

// What is asked for about the job's turn beside its priority: the members fairness_key and class
// ("batch"), or where they are missing the headers X-Comfyd-Fairness-Key and X-Comfyd-Class. Part
// of decode_common(). Code::invalid_argument.
Result<> decode_turn(const Call& call, const json::object& from, jobs::Spec& spec);

// Which workers alone may run the job. The pool: the member "pool", or where that is missing the
// header X-Comfyd-Pool, or else the tenant's. The region: the member "region", or the header
// X-Comfyd-Region. The GPU: "gpu_requirements" {"gpu_type", "memory_gb"}, "gpu_memory_fraction".
// Part of decode_common(), which lets the spec's requirement begin with it. Code::invalid_argument;
// of a pool it names those that there are.
inline constexpr std::array<std::string_view, 4> kMachineMembers{
    "pool", "region", "gpu_requirements", "gpu_memory_fraction"
};
Result<MachineWish> decode_machine(
    const Call& call, const Services& services, const json::object& from
);
// As those members; empty ones are left out.
json::object machine_members(const MachineWish& machine);
// The text of a member, or where it is missing that of a header.
Result<std::string> member_or_header(
    const Call& call, const json::object& from, std::string_view member, std::string_view header
);

// The member "output_config": what is to be made of the outputs (jobs/output_wishes.hpp), kept as
// the job's dialect_data of that name. Part of decode_common(). Code::invalid_argument.
Result<> decode_output_config(const json::object& from, jobs::Spec& spec);

// The member "reuse". Part of decode_common(). Code::invalid_argument.
Result<> decode_reuse(const json::object& from, jobs::Spec& spec);

// Where outputs are to be kept, and how long: the members "output_config" (storage, retention) and
// "retention". Part of decode_common(). Code::invalid_argument.
Result<> decode_keeping(
    const Call& call, const Services& services, const json::object& from, jobs::Spec& spec
);

// Header Idempotency-Key; empty: none. Code::invalid_argument.
Result<std::string> decode_idempotency_key(const Call& call);

std::string without_last_slash(std::string url);

// "http://host:port" for absolute links.
std::string base_url(const net::Request& request, const ApiOptions& options);

// An asset's download link, absolute, with its expiry.
struct Download {
    std::string url;
    Time expires_at;
};
Download download_link(const AssetId& id, const net::Request& request, const Services& services);

}  // namespace comfyd::api
