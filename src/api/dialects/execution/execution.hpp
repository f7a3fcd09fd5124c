// How the execution dialects (workflows, comfyui execute) show a job: the execution object, its
// result, its error, its metrics and the messages of its event stream. Also the small decoders that
// every dialect of this folder with a list route shares. Pure functions over plain values; any
// thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"
#include "jobs/service.hpp"

namespace comfyd::api::execution {

// Makes the download link of an asset.
using Links = std::function<Download(const AssetId&)>;
// Links of the request's own host. The call and the services outlive the result.
Links links_of(const Call& call, const Services& services);

// Links that need no request, of the server's public address or the one that the job was submitted
// to. They are the same each time, and live from `at`. The services outlive the result.
Links links_at(const Services& services, const jobs::Job& job, Time at);

// queued, processing, completed, failed, cancelled. An expired job has failed, one that waits for
// its next attempt is queued.
std::string_view status_of(jobs::State state);
// The states that a status stands for; empty when there is no such status.
std::vector<jobs::State> states_of(std::string_view status);
// The same for a dialect with statuses of its own.
std::vector<jobs::State> states_with(
    std::string_view status, std::string_view (*status_of_state)(jobs::State)
);

// {"outputs":[…],"images":[…]}
json::object encode_output(const jobs::Output& output, const Links& links);
json::object encode_result(const std::vector<jobs::Output>& produced, const Links& links);
// "outputs" of the member "result" of a body; null: it has none.
json::value* outputs_in(json::object& body);

// The HTTP status of a failed request. Unlike elsewhere a workflow that is not valid is a bad
// request: 400.
int http_status(Code code);
// Seconds after which the same request may succeed; nullopt when it will not.
std::optional<int> retry_after(const Error& error);
// The same as a header, where there is something to wait for.
void add_retry_after(const Error& error, net::Response& response);
// {"category","code","message","details","retry_after","timestamp"}
json::object encode_error(const Error& error, Time now);
// The same for a failure of the run, with "type", "node_id", "class_type" and "traceback" where
// known.
json::object encode_failure(const jobs::Failure& failure, Time at);

// The job as everybody sees it, whether its webhooks were delivered, and what was tried.
struct Shown {
    jobs::View view;
    bool webhook_delivered = false;
    std::vector<jobs::PastAttempt> attempts{};
};
json::object encode_execution(const Shown& shown, const Links& links);
// To millionths of a dollar, as costs are shown.
double rounded_usd(double cost);
// What is not measured is null.
json::object encode_metrics(const jobs::Job& job);

// Turns a job's events into the messages of its stream. Made when the stream opens, from the job as
// it is then.
class EventEncoder {
public:
    EventEncoder(const jobs::View& view, Links links);

    // Each event, in their order, whether or not it is encoded here.
    void follow(const jobs::Event& event);
    // What the message depends on besides the event and the links.
    std::string variant_of(const jobs::Event& event) const;

    json::object encode(const jobs::Event& event);
    // True when the stream ends with this event. The history of a job that was retried also holds
    // the end of its earlier life, after which it goes on.
    bool is_last(const jobs::Event& event) const;

private:
    Links links_;
    std::uint64_t sequence_;  // the latest when the stream was opened
    std::optional<Time> started_at_;
};
// The job ended and the client has seen its last event: nothing will follow.
bool is_over(const jobs::Job& job, std::uint64_t since);
// Where a stream starts that opens with the job's present state. The last event of an ended job
// follows its state, so that a client can rely on that event.
std::uint64_t since_state(const jobs::Job& job);

// ?since=: nullopt when empty, Code::invalid_argument when it is no number.
Result<std::optional<std::uint64_t>> parse_sequence(std::string_view text);
// Code::invalid_argument for a number that no event of the job can have had: its stream would stay
// silent for ever.
Result<> check_sequence(const jobs::Job& job, std::uint64_t since);

// ?status= (several with commas), ?workflow_id=, ?limit= (1..1000), ?cursor=
using StatusParser = std::function<std::vector<jobs::State>(std::string_view)>;
Result<jobs::ListQuery> decode_list_query(
    const Call& call, const StatusParser& states_of_status, std::string_view status_names
);

// The members that decode_common() reads, from the body and, where they win, from its
// "execution_config"; max_retries becomes max_attempts. Code::invalid_argument.
Result<json::object> common_members(const json::object& body);
// A request without what decode_common() has to say about it.
struct Decoded {
    Submission submission;
    json::object common;  // for decode_common()
};
// The beginning of one: of the dialect, with the common members of the body and a warning for each
// member that has no effect.
Result<Decoded> begin_decoding(const json::object& body, std::string_view dialect);
// Keeps members that must be objects, where present. Code::invalid_argument.
Result<> keep_objects(
    const json::object& body, std::initializer_list<std::string_view> keys, json::object& into
);
// The members of body[key] become parameters: "node.input", or a name as in
// workflow/parameters/parameters.hpp.
Result<> take_inputs(const json::object& body, std::string_view key, Submission& into);

// Asks whether the job's webhooks were delivered, where it has any, and what was tried.
Task<Result<Shown>> complete_view(const Services& services, jobs::View view);

using Encoder = std::function<json::object(const Shown&, const Links&)>;
// {"executions":[…],"count","next_cursor"}, each encoded by `encode`.
Task<Result<json::object>> list_executions(
    const Call& call, const Services& services, jobs::ListQuery query, Encoder encode
);

}  // namespace comfyd::api::execution
