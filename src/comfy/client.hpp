// Drives one ComfyUI server over HTTP and its WebSocket. It knows the wire format and nothing of
// jobs; deciding what an answer means for a job is the runner's business.
//
// Belongs to the executor of its net::Client. Failures common to all calls:
// Code::connection_failed, Code::request_timeout and Code::cancelled from the connection;
// Code::upstream_error for an answer that is not 2xx, with {"status", "body"} in its details;
// Code::protocol_error for a 2xx answer that cannot be read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/pool.hpp"
#include "base/task.hpp"
#include "comfy/fence.hpp"
#include "comfy/messages.hpp"
#include "net/client.hpp"

namespace comfyd::comfy {

struct SystemStats {
    std::string version;
    std::string device;  // name of the first one
    std::uint64_t vram_total = 0;
    std::uint64_t vram_free = 0;
    // Of the server's own process; 0: it cannot tell.
    std::uint64_t torch_vram_total = 0;  // that it has from the device
    std::uint64_t torch_vram_free = 0;   // and does not use now
    std::uint64_t ram_total = 0;
    std::uint64_t ram_free = 0;
};

// What GET /queue tells, without the prompts themselves.
struct Queue {
    std::vector<std::string> running;
    std::vector<std::string> pending;

    bool is_running(std::string_view prompt_id) const;
    bool is_pending(std::string_view prompt_id) const;
    bool contains(std::string_view prompt_id) const {
        return is_running(prompt_id) || is_pending(prompt_id);
    }
};

// How a prompt ended.
struct HistoryEntry {
    bool success = false;
    bool interrupted = false;
    std::optional<ExecutionError> error;
    json::object outputs;            // node id -> ui
    std::optional<Millis> run_time;  // from its start to its end; newer servers tell
};

struct Submission {
    std::string prompt_id;
    std::string client_id;
    std::string prompt;  // JSON text of the API-format map
    json::object extra_data;
    std::vector<std::string> targets{};  // output nodes to run; empty: all
};

struct Accepted {
    json::object node_errors;            // not empty: only a part of the outputs runs
    std::vector<std::string> outputs{};  // that run; only a dry run tells
};

// A file of a worker, as its ui dictionaries name it.
struct FileName {
    std::string filename;
    std::string subfolder;
    std::string type;  // "output", "temp", "input"

    // As an input value of a node names it.
    std::string path() const { return subfolder.empty() ? filename : subfolder + "/" + filename; }
};

struct ClientTimeouts {
    Millis request{10'000
    };  // ComfyUI stalls for up to a second now and then, and for longer while it validates
    Millis object_info{60'000};
    Millis submit{60'000};
    Millis validate{10'000};   // the answer can be done without
    Millis transfer{600'000};  // one file, either way
    Millis connect{10'000};    // the WebSocket
};

// The WebSocket of one client id. Destroying it drops the connection.
class Events {
public:
    Events(std::unique_ptr<net::WebSocket> socket, Pool& pool)
        : socket_(std::move(socket)), pool_(pool) {}

    Task<Result<Message>> next();
    // The two halves of next(). Large messages are decoded on the pool; texts above 8 MB are
    // Malformed.
    Task<Result<net::WebSocketMessage>> next_frame() { return socket_->read(); }
    Task<Message> decode(net::WebSocketMessage frame);
    void abort() { socket_->abort(); }

private:
    std::unique_ptr<net::WebSocket> socket_;
    Pool& pool_;
};

class Client {
public:
    // `base_url`: "http://host:8188", perhaps with a path prefix, "unix:/path/of.socket", or
    // "worker://name" of a machine that calls us. `token`: sent with every request, where the
    // server has an agent in front that asks for one.
    Client(
        net::Client& http,
        Pool& pool,
        std::string base_url,
        ClientTimeouts timeouts,
        std::string token = {}
    );

    Task<Result<SystemStats>> system_stats();
    // The document as it came; parsing it is for the pool.
    Task<Result<std::string>> object_info();
    Task<Result<Queue>> queue();
    // nullopt: unknown, waiting or running.
    Task<Result<std::optional<HistoryEntry>>> history(std::string prompt_id);
    // Code::worker_rejected when validation said no; details are {"error", "node_errors"} as the
    // server wrote them. Of a server with a fence (comfy/fence.hpp) also Code::lead_lost, and
    // Code::conflict for a prompt that it has or had already.
    Task<Result<Accepted>> submit(Submission submission);
    // Says who leads. False: the server has no fence. Code::lead_lost: it knows a higher epoch.
    Task<Result<bool>> announce(LeadMark lead);
    // The same without queueing anything, where the server has the node pack comfyd.
    Task<Result<Accepted>> validate(Submission submission);
    // The node pack's description of the classes; without members where there is no pack.
    Task<Result<json::object>> described_classes();
    // Without members where the server is too old to have any.
    Task<Result<json::object>> node_replacements();
    // A path of the agent in front of it (docs/worker.md): its answer to a GET, without members
    // where there is no agent, and to a POST.
    Task<Result<json::object>> ask_agent(std::string target);
    Task<Result<json::object>> tell_agent(std::string target, json::object body);
    // Stops the prompt where it runs. ComfyUI after 0.25.0 sees to it in one step that it does.
    // Those before look first and stop what runs by then, which, as good as never, is the next
    // prompt.
    Task<Result<>> interrupt(std::string prompt_id);
    Task<Result<>> delete_queued(std::string prompt_id);
    Task<Result<>> free(bool unload_models, bool free_memory);
    // Into a folder of the input folder. Returns the name that the server gave the file.
    Task<Result<FileName>> upload(
        std::string folder, std::string filename, std::string content_type, std::string bytes
    );
    // The server can show the file.
    Task<Result<bool>> has_file(FileName file);
    // Returns the content type. Code::not_found when the server does not have the file.
    Task<Result<std::string>> view(
        FileName file, net::Client::Sink sink, net::Client::Absorb absorb = {}
    );
    Task<Result<std::unique_ptr<Events>>> connect_events(std::string client_id);

private:
    net::ClientRequest make_request(std::string method, std::string_view target) const;
    Task<Result<std::string>> get(std::string target, Millis timeout, std::uint64_t bytes_max);
    // Without members where the server has no such document.
    Task<Result<json::object>> get_if_there(std::string target);
    Task<Result<Accepted>> post_prompt(std::string target, Submission submission, Millis timeout);
    Task<Result<std::string>> post(std::string target, std::string body, Millis timeout);

    net::Client& http_;
    Pool& pool_;
    std::string base_url_;
    std::string socket_;  // of a server on a unix socket, or worker://name
    std::string bearer_;  // empty: none
    ClientTimeouts timeouts_;
    bool cancels_jobs_ = true;  // POST /api/jobs/{id}/cancel, until the server says that it is none
};

// What a server is called when nobody named it: host:port, of a unix socket its file's name
// without the extension, or the name that it calls by. Code::invalid_argument: `base_url` is none.
Result<std::string> server_name(std::string_view base_url);

// POST /interrupt stops the prompt that it is told, and no other; servers before 0.3.57 stop
// whatever runs.
bool interrupts_by_id(std::string_view version);

// Nobody listens there: the process is gone, and nothing was sent.
bool is_refused(const Error& error);

// The parts of answers, for tests and for whoever reads them by other ways.
Result<SystemStats> read_system_stats(const json::value& document);
Result<Queue> read_queue(const json::value& document);
HistoryEntry read_history_entry(const json::object& entry);
// For a person: which node, which input, what is wrong. `answer`: {"error", "node_errors"}.
std::string describe_rejection(const json::object& answer);
// The same as an error: its details are the answer, and with the names that an execution_error has
// the node to blame: node_id, node_type, exception_type, exception_message.
Error rejection(std::string_view who, json::object answer);

}  // namespace comfyd::comfy
