// The serverless API of RunPod with the inputs and outputs of its worker-comfyui, so that clients
// and SDKs written for those work with another base URL: /runpod/v2/{endpoint}/run, runsync,
// status, stream, cancel, retry, purge-queue, health.
//
// An endpoint is any name; it is kept as the job's workflow_id, and a job is found under the
// endpoint that it was sent to. Decoding and encoding are here as free functions for tests.
// `services` outlives the router.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/dialects/execution/execution.hpp"
#include "api/dialects/named/named.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"
#include "assets/s3/given_bucket.hpp"
#include "base/mutex.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::api {

void add_runpod(Router& router, const Services& services);

namespace runpod {

inline constexpr std::string_view kDialect = "runpod";
inline constexpr std::uint64_t kRunBytesMax = 10 * 1024 * 1024;  // bodies, and files within answers
inline constexpr std::uint64_t kRunSyncBytesMax = 20 * 1024 * 1024;
inline constexpr std::uint64_t kWebhookBytesMax = 4 * 1024 * 1024;  // files within the body
inline constexpr std::uint64_t kChunkBytesMax = 1024 * 1024;        // of one chunk of a stream
inline constexpr Millis kExecutionTimeoutDefault = std::chrono::minutes(10);
inline constexpr Millis kTimeToLiveDefault = std::chrono::hours(24);
inline constexpr int kLowPriority = 3;

// A picture of the request, under the name that the workflow uses for it.
struct InputImage {
    std::string name;
    std::string content_type;  // of a data URL; may be empty
    std::string bytes;
    std::string source{};  // where it is to be had, instead of the bytes; empty: they are here
    std::string field{};   // of the request
};

// A request without what decode_common() has to say about it.
struct Decoded {
    Submission submission;
    std::vector<InputImage> images;
    json::object common;  // for decode_common()
    // A stored workflow in the place of one that the request brings, and the values for it.
    std::optional<named::Choice> named{};
    json::object values{};
    std::optional<assets::s3::GivenBucket> bucket{};  // where the outputs are to be brought
};
// Code::invalid_argument.
Result<Decoded> decode_request(json::object body);
// The member "s3Config"; nullopt: there is none. Code::invalid_argument; values are not repeated.
Result<std::optional<assets::s3::GivenBucket>> decode_bucket(const json::object& body);
// Lets the outputs be brought there, as the job's dialect_data "export". Code::invalid_argument,
// Code::address_refused for one that is not public.
Result<> keep_bucket(
    const Services& services, const assets::s3::GivenBucket& bucket, jobs::Spec& spec
);
// Also says so when it is no name that can be stored and shown.
Result<> check_endpoint(std::string_view endpoint);
// ?wait=: milliseconds. Code::invalid_argument outside of RunPod's range.
Result<Millis> decode_wait(std::string_view text);

// An input picture that lies in the store.
struct StoredImage {
    std::string name;
    std::string hash;
};
// Puts references to the stored pictures in the place of their names, in the inputs that choose
// files. Content names them on the worker, so requests that use the same name for other pictures do
// not disturb each other. The names that nothing uses.
std::vector<std::string> bind_images(
    json::object& graph,
    const workflow::Catalogue& catalogue,
    const std::vector<StoredImage>& images
);

// Brings the workflow here that the request only names. Failures of named::fill() and
// fetch_workflow().
Task<Result<>> open_workflow_of(const Call& call, const Services& services, Decoded& decoded);
// Stores the pictures and lets the workflow refer to them. Failures of fetch_inputs(),
// inputs_error() and the store.
Task<Result<>> place_images(const Call& call, const Services& services, Decoded& decoded);

// IN_QUEUE, IN_PROGRESS, COMPLETED, FAILED, CANCELLED, TIMED_OUT
std::string_view status_of(const jobs::Job& job);
// {"id","status","delayTime","executionTime","workerId","output","error"}; times in ms, what is not
// known is left out.
// Of a job that failed: what it had finished before.
bool has_output(const jobs::Job& job);
json::object encode_status(const jobs::View& view, std::optional<json::object> output);
// {"error","code","details"}
json::object encode_error(const Error& error);

struct EndpointCounts {
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t in_progress = 0;
    std::uint64_t in_queue = 0;
    std::uint64_t retried = 0;
};
json::object encode_health(
    const EndpointCounts& counts, const std::vector<jobs::WorkerInfo>& workers
);

// The files of a completed job: {"images":[{"filename","type","data"}],"files":[…],"errors":[…]}.
// Those that fit into `inline_bytes_max` together come as base64, the others as links.
Task<json::object> make_output(
    const Services& services, jobs::Job job, execution::Links links, std::uint64_t inline_bytes_max
);
// The same for one file.
Task<json::object> make_file(
    const Services& services,
    std::string tenant,
    jobs::Output output,
    execution::Links links,
    std::uint64_t inline_bytes_max
);

// What a webhook of such a job tells: its status; nullopt for jobs of other dialects. The same
// text each time for the same event, as long as its files are stored.
Task<std::optional<std::string>> webhook_body(
    const Services& services, jobs::Job job, jobs::Event event
);

// What the readers of streams have been given, because a chunk is given once. Of the jobs that were
// asked for last; of the others everything is given again. Any thread.
class StreamCursors {
public:
    static constexpr std::size_t kJobsMax = 10'000;

    // True when `text` is not what was given last.
    bool give_progress(const JobId& job, const std::string& text);
    // True once for each life of a job: a retry begins another.
    bool give_result(const JobId& job, int attempt);

private:
    struct Given {
        JobId job;
        std::string progress;
        int attempt = 0;  // whose result was given; 0: none
    };
    Given& touch(const JobId& job) COMFYD_REQUIRES(mutex_);

    Mutex mutex_;
    std::list<Given> by_use_ COMFYD_GUARDED_BY(mutex_);  // latest first
    std::unordered_map<JobId, std::list<Given>::iterator> jobs_ COMFYD_GUARDED_BY(mutex_);
};

json::object operation_run();
json::object operation_runsync();
json::object operation_status();
json::object operation_stream();
json::object operation_cancel();
json::object operation_retry();
json::object operation_purge();
json::object operation_health();
json::object schemas();

}  // namespace runpod
}  // namespace comfyd::api
