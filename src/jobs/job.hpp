// The job: what a client asked for, what became of it, and the only ways in which it can change.
// Plain values; no I/O, no clock. docs/life-of-a-job.md tells the whole story.
//
// Copies of the large ones are not inline: a hundred files have them, and each would compile them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "jobs/usage.hpp"
#include "scheduler/profile.hpp"

namespace comfyd::jobs {

enum class State {
    queued,         // durable, waits for a worker
    running,        // an attempt is on a worker
    retry_waiting,  // an attempt failed in a way that may pass; queued again at not_before
    completed,
    failed,
    cancelled,
    expired,  // its deadline passed before it could finish
};
std::string_view to_string(State state);
std::optional<State> parse_state(std::string_view text);
constexpr bool is_terminal(State state) {
    return state >= State::completed;
}

inline constexpr int kPriorityMin = 1;
inline constexpr int kPriorityMax = 10;
inline constexpr int kPriorityDefault = 5;
inline constexpr int kMaxAttemptsDefault = 3;
inline constexpr Millis kTimeoutDefault = std::chrono::minutes(30);
inline constexpr Millis kTimeoutMax = std::chrono::hours(24 * 7);
inline constexpr std::size_t kMetadataBytesMax = 16 * 1024;
inline constexpr std::size_t kIdempotencyKeyBytesMax = 255;
inline constexpr std::size_t kFairnessKeyBytesMax = 128;

// Where and how the client wants to be told. `events` holds names such as "execution.completed";
// empty means the terminal ones.
struct Webhook {
    std::string url;
    std::string secret;
    std::vector<std::pair<std::string, std::string>> headers;
    std::vector<std::string> events;
    // How it is delivered; nullopt: as the server is set.
    std::optional<int> max_retries{};     // after the first attempt
    std::optional<Millis> retry_delay{};  // before the first retry, then doubled each time
    std::optional<Millis> timeout{};      // of one attempt
    std::string method = "POST";          // or PUT, PATCH
    bool verify_tls = true;               // false: any certificate will do

    bool wants(std::string_view event) const { return is_wanted(event, events); }
    // By a filter as `events` is one.
    static bool is_wanted(std::string_view event, const std::vector<std::string>& events);
    json::object to_json() const;
    static Result<Webhook> from_json(const json::object& from);
};

// What a client asked for. Never changes after the job was accepted.
struct Spec {
    // Set: the id that the job gets, made by JobId::make() just now. For dialects that must know
    // it before the job can tell of itself.
    std::optional<JobId> id;
    std::string tenant = "local";  // who asked
    std::string dialect;           // which API it came by, for example "comfy-v2"
    std::string workflow;          // API-format prompt, JSON text
    json::object extra_data;       // ComfyUI's extra_data, without secrets
    json::object
        secret_extra_data;  // forwarded to the worker, kept in memory only, never stored or logged
    int priority = kPriorityDefault;
    bool batch = false;                // best effort: after everything that is not
    std::string fairness_key;          // of the tenant's own users or projects; empty: none
    Millis timeout = kTimeoutDefault;  // of one attempt on a worker
    std::optional<Time> deadline;      // finished by then or expired
    int max_attempts = kMaxAttemptsDefault;
    json::object metadata;  // the client's own; handed back as it came
    // What the dialect needs to answer later, for example output_config; "keep" says how outputs
    // are kept (Keeping).
    json::object dialect_data;
    std::string workflow_id;  // a name for the workflow, where the dialect has one
    std::optional<Webhook> webhook;
    std::string idempotency_key;  // empty: none. Unique per tenant for 24 hours
    std::string request_hash;     // of everything that makes two requests the same
    int node_count = 0;
    Requirement requirement;           // of the worker that may run it
    std::string domain = "main";       // whose leader runs it, of the nodes that share a ledger
    scheduler::ProfilePtr profile{};   // with the same requirement; null: only that is known
    std::vector<std::string> targets;  // output nodes to run; empty: all
    std::optional<bool> reuse{};       // asked for; nullopt: as it is set for the tenant
    // Set: the job may be answered with the outputs of another one of the tenant that has the same
    // (docs/reuse.md).
    std::string reuse_key{};
    // What was done otherwise than asked, each a text or an object: the first thing that the job
    // tells of itself.
    json::array warnings{};
    // The answer tells how long the job will take. It costs a question to the core.
    bool with_estimates = false;

    Spec();
    Spec(const Spec& other);
    Spec(Spec&& other) noexcept;
    Spec& operator=(const Spec& other);
    Spec& operator=(Spec&& other);
    ~Spec();
};

struct Output {
    AssetId asset;
    std::string node_id;
    std::string name;       // file name as the worker gave it
    std::string subfolder;  // likewise
    std::string folder;     // ComfyUI's type: "output", "temp", "input"
    std::string type;       // image, video, audio, text, file, latent
    std::string content_type;
    std::uint64_t size_bytes = 0;
    std::string hash;  // "blake3:…"
    std::optional<std::uint32_t> crc32{};
    // Where it is to be kept, and for how long, when the request or the server says so
    // (docs/results.md). Empty: in the store of this server, for as long as its job.
    std::string store{};
    std::string retention{};  // the name of its class
    std::optional<Time> expires_at{};
    std::optional<Time> moves_at{};  // to a cheaper class of storage; not in to_json()
    // Of a small one: kept by the commit that completes the job.
    std::shared_ptr<const std::string> bytes{};
    // Of another, under which its bytes have just come into the store; 0: they were there.
    std::uint64_t generation = 0;
    json::object media{};  // what kind of file it is and what is known of it (docs/outputs.md)
    // Of a variant, which form of its output it is: "converted", "stripped", "poster", "thumbnail".
    std::string variant{};
    std::vector<Output> variants{};  // made of it for the client; assets of the job as it is
    json::array failed_variants{};   // those that could not be made, each with its reason
    // Of one that was to be brought to a bucket of the client's: {"url", "expires_at"}, or
    // {"error"} where that failed.
    json::object exported{};

    Output();
    Output(const Output& other);
    Output(Output&& other) noexcept;
    Output& operator=(const Output& other);
    Output& operator=(Output&& other);
    ~Output();

    json::object to_json() const;
    static Output from_json(const json::object& from);
};

// Where a job's outputs go and how long they stay, as it was decided when it was accepted: the
// member "keep" of its dialect_data. Without one they stay here as long as the job.
struct Keeping {
    std::string store{};
    std::string retention{};
    std::optional<Millis> life{};         // from the end of the job on; nullopt: as the job
    std::optional<Millis> moves_after{};  // to a cheaper class of storage
    bool in_answers = false;              // answers about the job hold them, as base64

    bool operator==(const Keeping&) const = default;
    json::object to_json() const;
    static Keeping from_json(const json::object& from);
};

// Why an attempt or a job failed.
struct Failure {
    Code code = Code::internal;
    std::string message;
    std::string node_id;     // where known
    std::string class_type;  // likewise
    std::string traceback;   // likewise
    json::object details;

    Failure();
    Failure(const Failure& other);
    Failure(Failure&& other) noexcept;
    Failure& operator=(const Failure& other);
    Failure& operator=(Failure&& other);
    ~Failure();

    static Failure from(const Error& error);
    json::object to_json() const;
    static Failure from_json(const json::object& from);
};

// A prompt that a job shares with others, and which of them it is. Its event `started` tells of it.
struct BatchPlace {
    PromptId prompt;
    std::size_t place = 0;

    json::object to_json() const;
};

struct Job {
    JobId id;
    std::string tenant;
    std::string dialect;
    std::string domain = "main";  // as in its Spec
    State state = State::queued;
    int priority = kPriorityDefault;  // as asked for; the scheduler may reckon with another
    bool batch = false;
    std::string fairness_key;
    Time created_at{};
    std::optional<Time> started_at;   // of the latest attempt
    std::optional<Time> finished_at;  // when a terminal state was reached
    std::optional<Time> not_before;   // retry_waiting: when it is queued again
    std::optional<Time> deadline;
    Millis timeout = kTimeoutDefault;
    int attempt = 0;  // number of the latest attempt; 0 before the first
    int max_attempts = kMaxAttemptsDefault;
    std::string worker;                  // of the latest attempt
    std::optional<BatchPlace> shared{};  // likewise; nullopt: it runs alone
    bool cancel_requested = false;       // running, and asked to stop
    std::uint64_t sequence = 0;          // of the latest durable event
    int revision = 0;  // counts durable changes; the ledger refuses a change of a stale one
    std::string workflow_id;
    json::object metadata;
    json::object dialect_data;
    bool has_webhook = false;
    int node_count = 0;
    std::vector<Output> outputs;  // set when completed; when it failed, those finished before
    json::object ui_outputs;      // ComfyUI's own "outputs" of the run, for dialects that show them
    std::optional<Failure> failure;      // of the latest failed attempt, or of the job
    std::optional<Usage> usage;          // of all attempts so far that were measured
    std::string reuse_key{};             // as in its Spec
    std::optional<JobId> reused_from{};  // it was answered with the outputs of this one

    Job();
    Job(const Job& other);
    Job(Job&& other) noexcept;
    Job& operator=(const Job& other);
    Job& operator=(Job&& other);
    ~Job();

    // Durations, where both ends are known.
    std::optional<Millis> queue_time() const;
    std::optional<Millis> execution_time() const;
};

// Calls `with` for each output and each variant of one: all that has an asset.
template <class Outputs, class With>
void each_file(Outputs& outputs, const With& with) {
    for (auto& output : outputs) {
        with(output);
        each_file(output.variants, with);
    }
}
// The same as a list. `outputs` outlives it.
std::vector<const Output*> files_of(const std::vector<Output>& outputs);
// The form that the client asked for, where it was made; else the output itself.
const Output& as_wanted(const Output& output);

// The id under which ComfyUI knows an attempt. Derived, so that after a crash we recognise our own
// prompts.
PromptId prompt_id(const JobId& job, int attempt);

// Progress of a running attempt: always a full snapshot.
struct Progress {
    double value = 0;  // 0..1, never 1 before the end, never backwards within an attempt
    int nodes_done = 0;
    int nodes_total = 0;
    std::string current_node;
    std::string current_node_class;
    int step = 0;
    int steps = 0;
    std::string message;

    json::object to_json() const;
};

// What a worker says while it runs a prompt, in its own words. Nothing here reads it: it is handed
// to those who subscribe to it and speak the same language, and only made where somebody does.
struct WorkerMessage {
    std::string type;   // as the worker names it: "executing", "progress_state", "preview", …
    json::object data;  // as the worker said it, with its own prompt id
    std::string bytes;  // of a picture or a text
    std::string content_type;  // of a picture
};

enum class EventType {
    queued,
    started,
    progress,
    output,
    retrying,
    cancelling,
    completed,
    failed,
    cancelled,
    expired,
    preview,
    warning,
};
std::string_view to_string(EventType type);
std::optional<EventType> parse_event_type(std::string_view text);
// "execution.completed", …: the name under which webhooks know it.
std::string webhook_event_name(EventType type);

// One entry of a job's event stream. Sequence numbers of one job rise strictly; those of progress
// and preview events are used once and not stored, so a stored stream has gaps.
struct Event {
    JobId job;
    std::uint64_t sequence = 0;
    EventType type = EventType::queued;
    Time at{};
    State state = State::queued;  // after the event
    json::object data;            // by type: see docs/events.md
    std::string preview;          // type preview: picture bytes
    std::string preview_type;     // type preview: "image/jpeg" or "image/png"

    bool is_durable() const {
        return type != EventType::progress && type != EventType::preview &&
               type != EventType::output;
    }
};

// After a restart sequence numbers go on in a fresh block, because those of unsaved events are
// forgotten.
std::uint64_t next_sequence_block(std::uint64_t last);

// A change of a job: the job after it and the event that tells of it. Nothing has happened until
// the ledger committed it.
struct Change {
    Job job;
    Event event;
    std::optional<Usage> used{};  // of the attempt that ended with it
};

// The state machine. Each function answers Code::conflict for a job whose state does not allow it,
// and changes nothing. `sequence` is the event's, above every earlier one of the job.
Result<Change> start(
    const Job& job,
    std::string worker,
    std::uint64_t sequence,
    Time now,
    const std::optional<BatchPlace>& shared = std::nullopt
);
Result<Change> complete(
    const Job& job,
    std::vector<Output> outputs,
    json::object ui_outputs,
    std::uint64_t sequence,
    Time now
);
// queued -> completed without a run, with the outputs of `source` as assets of its own.
Result<Change> complete_from(const Job& job, const Job& source, std::uint64_t sequence, Time now);
Result<Change> fail_job(const Job& job, Failure failure, std::uint64_t sequence, Time now);
// After a failure that may pass (jobs/doctor.hpp), while attempts are left and nobody asked to
// cancel.
Result<Change> retry_later(
    const Job& job, Failure failure, Time not_before, std::uint64_t sequence, Time now
);
// retry_waiting -> queued when not_before came.
Result<Change> requeue(const Job& job, std::uint64_t sequence, Time now);
// queued or retry_waiting -> cancelled at once; running -> cancel_requested.
Result<Change> request_cancel(const Job& job, std::uint64_t sequence, Time now);
// running and cancel_requested -> cancelled, when the worker has let go of it.
Result<Change> confirm_cancel(const Job& job, std::uint64_t sequence, Time now);
Result<Change> expire(const Job& job, std::uint64_t sequence, Time now);
// failed, cancelled or expired -> queued, with all attempts to go again.
Result<Change> revive(const Job& job, std::uint64_t sequence, Time now);

// Counts what the attempt that ended with the change has used.
void add_usage(Change& change, Usage used);

// A new job in state queued, with its event.
Change make_job(JobId id, const Spec& spec, Time now);

// The event that tells of the warnings of a job that is just being accepted, as the next one of its
// stream; nullopt: it has none.
std::optional<Event> warn(Change& accepted, const Spec& spec);

// Exponential: 1 s, 2 s, 4 s … at most a minute; `jitter` in 0..1 spreads it.
Millis retry_delay(int attempt, double jitter);

}  // namespace comfyd::jobs
