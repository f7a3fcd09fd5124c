#include "comfy/client.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "comfy/members.hpp"
#include "net/lines.hpp"

namespace comfyd::comfy {
namespace {

// Documents above this are parsed and bodies above this are built on the pool.
constexpr std::size_t kLargeBytes = 256 * 1024;
// What a worker may answer, by kind: a parsed document takes about ten times its size, and a worker
// that has gone mad must not take the memory of all others.
constexpr std::size_t kDocumentBytesMax = 256 * 1024 * 1024;  // what tells of node classes
constexpr std::size_t kPromptsBytesMax = 64 * 1024 * 1024;    // answers that hold whole prompts
constexpr std::size_t kAnswerBytesMax = 1024 * 1024;          // all others
constexpr std::size_t kMessageBytesMax =
    128 * 1024 * 1024;  // full-size pictures come as previews, too
constexpr std::size_t kTextMessageBytesMax = 8 * 1024 * 1024;
constexpr std::size_t kShownBodyBytesMax = 500;
constexpr std::chrono::seconds kSocketIdle{60};
constexpr std::string_view kUnix = "unix:";

bool is_success(int status) {
    return status >= 200 && status < 300;
}

// Why, where an agent says it in front of a ComfyUI that is not there (docs/worker.md).
std::string reason_in(const net::ClientResponse& response) {
    const auto answer = json::parse_object(response.body);
    const std::string reason = answer ? text_of(*answer, "detail") : std::string();
    return reason.empty() ? reason : ": " + reason.substr(0, kShownBodyBytesMax);
}

Error unexpected_status(const std::string& what, const net::ClientResponse& response) {
    const std::string shown = response.body.substr(0, kShownBodyBytesMax);
    return Error(
        Code::upstream_error,
        what + " was answered with status " + std::to_string(response.status) + reason_in(response),
        {{"status", response.status}, {"body", shown}}
    );
}

bool has_no_such_route(const Error& error) {
    const json::value* status = json::find(error.details, "status");
    return status != nullptr && (*status == 404 || *status == 405);
}

// What `read` makes of a text, where it holds nobody up. Only what it returns comes back: a large
// document also takes long to destroy.
template <class Read>
Task<std::invoke_result_t<Read, const std::string&>> read_anywhere(
    Pool& pool, std::string text, Read read
) {
    if (text.size() < kLargeBytes) {
        co_return read(text);
    }
    auto done =
        co_await pool.run([text = std::move(text), read = std::move(read)] { return read(text); });
    co_return done;
}

std::string submission_body(const Submission& submission) {
    std::string body = "{\"prompt\":";
    body.reserve(submission.prompt.size() + 256);
    body += submission.prompt;
    body += ",\"prompt_id\":" + json::serialize(json::value(submission.prompt_id));
    body += ",\"client_id\":" + json::serialize(json::value(submission.client_id));
    if (!submission.targets.empty()) {
        const json::array targets(submission.targets.begin(), submission.targets.end());
        body += ",\"partial_execution_targets\":" + json::serialize(targets);
    }
    if (!submission.extra_data.empty()) {
        body += ",\"extra_data\":" + json::serialize(submission.extra_data);
    }
    body += '}';
    return body;
}

std::string view_target(const FileName& file) {
    return "/view?filename=" + net::percent_encode(file.filename) +
           "&subfolder=" + net::percent_encode(file.subfolder) +
           "&type=" + net::percent_encode(file.type);
}

// What a fence says; nullopt: it is something else.
std::optional<Error> read_fence(const json::object& answer) {
    const json::object* error = object_of(answer, "error");
    const std::string type = error == nullptr ? "" : text_of(*error, "type");
    if (type == kLowerEpoch) {
        return Error(Code::lead_lost, "the worker says: " + text_of(*error, "details"));
    }
    if (type == kKnownPrompt) {
        return Error(Code::conflict, "the worker says: " + text_of(*error, "details"));
    }
    return std::nullopt;
}

Error protocol_error(const std::string& what, const std::string& why) {
    return Error(Code::protocol_error, what + " was answered with something unreadable: " + why);
}

// The body of a good answer.
Task<Result<std::string>> fetch(net::Client& http, net::ClientRequest request, std::string what) {
    auto response = co_await http.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    if (!is_success(response->status)) {
        co_return fail(unexpected_status(what, *response));
    }
    co_return std::move(response->body);
}

Result<Queue> read_queue_text(const std::string& text) {
    const auto document = parse_python(text);
    if (!document) {
        return fail(protocol_error("GET /queue", document.error().message));
    }
    return read_queue(*document);
}

Result<std::optional<HistoryEntry>> read_history_text(
    const std::string& text, const std::string& prompt_id
) {
    const auto document = parse_python(text);
    if (!document) {
        return fail(protocol_error("GET /history", document.error().message));
    }
    const json::object* root = document->if_object();
    if (root == nullptr) {
        return fail(protocol_error("GET /history", "no object"));
    }
    const json::object* entry = object_of(*root, prompt_id);
    return entry == nullptr ? std::nullopt : std::optional(read_history_entry(*entry));
}

}  // namespace

Task<Result<Message>> Events::next() {
    auto frame = co_await next_frame();
    if (!frame) {
        co_return fail(std::move(frame.error()));
    }
    auto message = co_await decode(std::move(*frame));
    co_return message;
}

Task<Message> Events::decode(net::WebSocketMessage frame) {
    if (!frame.binary && frame.data.size() > kTextMessageBytesMax) {
        co_return Malformed{};
    }
    const bool binary = frame.binary;
    auto message =
        co_await read_anywhere(pool_, std::move(frame.data), [binary](const std::string& data) {
            return binary ? decode_binary(data) : decode_text(data);
        });
    co_return message;
}

Client::Client(
    net::Client& http, Pool& pool, std::string base_url, ClientTimeouts timeouts, std::string token
)
    : http_(http),
      pool_(pool),
      base_url_(std::move(base_url)),
      bearer_(token.empty() ? "" : "Bearer " + token),
      timeouts_(timeouts) {
    while (base_url_.ends_with('/')) {
        base_url_.pop_back();
    }
    if (base_url_.starts_with(kUnix)) {
        socket_ = base_url_.substr(kUnix.size());
        base_url_ = "http://localhost";
    } else if (net::line_name(base_url_)) {
        socket_ = std::exchange(base_url_, "http://localhost");
    }
}

net::ClientRequest Client::make_request(std::string method, std::string_view target) const {
    net::ClientRequest request;
    request.method = std::move(method);
    request.url = base_url_ + std::string(target);
    request.socket = socket_;
    if (!bearer_.empty()) {
        request.headers.set("Authorization", bearer_);
    }
    return request;
}

Task<Result<std::string>> Client::get(std::string target, Millis timeout, std::uint64_t bytes_max) {
    auto request = make_request("GET", target);
    request.timeout = timeout;
    request.response_bytes_max = bytes_max;
    return fetch(http_, std::move(request), "GET " + target);
}

Task<Result<std::string>> Client::post(std::string target, std::string body, Millis timeout) {
    auto request = make_request("POST", target);
    request.headers.set("Content-Type", "application/json");
    request.body = std::move(body);
    request.timeout = timeout;
    request.response_bytes_max = kAnswerBytesMax;
    return fetch(http_, std::move(request), "POST " + target);
}

Task<Result<SystemStats>> Client::system_stats() {
    auto body = co_await get("/system_stats", timeouts_.request, kAnswerBytesMax);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    const auto document = parse_python(*body);
    if (!document) {
        co_return fail(protocol_error("GET /system_stats", document.error().message));
    }
    co_return read_system_stats(*document);
}

Task<Result<std::string>> Client::object_info() {
    return get("/object_info", timeouts_.object_info, kDocumentBytesMax);
}

Task<Result<json::object>> Client::get_if_there(std::string target) {
    auto body = co_await get(target, timeouts_.request, kDocumentBytesMax);
    if (!body && body.error().code != Code::upstream_error) {
        co_return fail(std::move(body.error()));
    }
    if (!body) {
        co_return json::object();
    }
    // Servers answer with a page of their own where they do not know an address.
    auto document = co_await read_anywhere(pool_, std::move(*body), [](const std::string& text) {
        return parse_python(text);
    });
    const bool found = document && document->is_object();
    co_return found ? std::move(document->get_object()) : json::object();
}

Task<Result<json::object>> Client::described_classes() {
    return get_if_there("/comfyd/classes");
}

Task<Result<json::object>> Client::node_replacements() {
    return get_if_there("/node_replacements");
}

Task<Result<json::object>> Client::ask_agent(std::string target) {
    return get_if_there(std::move(target));
}

Task<Result<json::object>> Client::tell_agent(std::string target, json::object body) {
    const std::string what = "POST " + target;
    auto text = co_await post(std::move(target), json::serialize(body), timeouts_.request);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    auto answer = json::parse_object(*text);
    if (!answer) {
        co_return fail(protocol_error(what, answer.error().message));
    }
    co_return std::move(*answer);
}

Task<Result<Queue>> Client::queue() {
    auto body = co_await get("/queue", timeouts_.request, kPromptsBytesMax);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto queue = co_await read_anywhere(pool_, std::move(*body), read_queue_text);
    co_return queue;
}

Task<Result<std::optional<HistoryEntry>>> Client::history(std::string prompt_id) {
    auto body = co_await get(
        "/history/" + net::percent_encode(prompt_id), timeouts_.request, kPromptsBytesMax
    );
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto entry =
        co_await read_anywhere(pool_, std::move(*body), [prompt_id](const std::string& text) {
            return read_history_text(text, prompt_id);
        });
    co_return entry;
}

Task<Result<Accepted>> Client::submit(Submission submission) {
    return post_prompt("/prompt", std::move(submission), timeouts_.submit);
}

Task<Result<Accepted>> Client::validate(Submission submission) {
    return post_prompt("/comfyd/validate", std::move(submission), timeouts_.validate);
}

Task<Result<Accepted>> Client::post_prompt(
    std::string target, Submission submission, Millis timeout
) {
    auto request = make_request("POST", target);
    request.headers.set("Content-Type", "application/json");
    request.body = submission_body(submission);
    request.timeout = timeout;
    request.response_bytes_max = kPromptsBytesMax;  // a refusal quotes the inputs
    auto response = co_await http_.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    Error other_status = unexpected_status("POST " + target, *response);
    auto document = co_await read_anywhere(
        pool_, std::move(response->body), [](const std::string& text) { return parse_python(text); }
    );
    json::object* answer = document ? document->if_object() : nullptr;
    if (response->status == 400 && answer != nullptr) {
        co_return fail(rejection("the worker", std::move(*answer)));
    }
    if (auto refused =
            response->status == 409 && answer != nullptr ? read_fence(*answer) : std::nullopt) {
        co_return fail(std::move(*refused));
    }
    if (!is_success(response->status)) {
        co_return fail(std::move(other_status));
    }
    if (answer == nullptr) {
        co_return fail(
            protocol_error("POST " + target, document ? "no object" : document.error().message)
        );
    }
    Accepted accepted;
    if (const json::object* errors = object_of(*answer, "node_errors")) {
        accepted.node_errors = *errors;
    }
    if (const json::array* outputs = array_of(*answer, "outputs")) {
        for (const json::value& output : *outputs) {
            if (output.is_string()) {
                accepted.outputs.emplace_back(output.get_string());
            }
        }
    }
    co_return accepted;
}

Task<Result<bool>> Client::announce(LeadMark lead) {
    auto request = make_request("POST", kLeadRoute);
    request.headers.set("Content-Type", "application/json");
    request.body = json::serialize(lead.to_json());
    request.timeout = timeouts_.request;
    request.response_bytes_max = kAnswerBytesMax;
    auto response = co_await http_.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    const auto document = parse_python(response->body);
    const json::object* answer = document ? document->if_object() : nullptr;
    if (answer == nullptr) {
        co_return false;
    }
    if (auto refused = read_fence(*answer)) {
        co_return fail(std::move(*refused));
    }
    const auto known = LeadMark::from_json(*answer);
    co_return is_success(response->status) && known && known->domain == lead.domain &&
        known->epoch == lead.epoch;
}

Task<Result<>> Client::interrupt(std::string prompt_id) {
    if (cancels_jobs_) {
        auto answer = co_await post("/api/jobs/" + prompt_id + "/cancel", "{}", timeouts_.request);
        if (answer || !has_no_such_route(answer.error())) {
            co_return answer ? Result<>() : fail(std::move(answer.error()));
        }
        cancels_jobs_ = false;
    }
    std::string body = json::serialize(json::object{{"prompt_id", prompt_id}});
    auto answer = co_await post("/interrupt", std::move(body), timeouts_.request);
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    co_return Result<>();
}

Task<Result<>> Client::delete_queued(std::string prompt_id) {
    json::object body;
    body["delete"] = json::array{json::value(prompt_id)};
    auto answer = co_await post("/queue", json::serialize(body), timeouts_.request);
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    co_return Result<>();
}

Task<Result<>> Client::free(bool unload_models, bool free_memory) {
    std::string body =
        json::serialize(json::object{{"unload_models", unload_models}, {"free_memory", free_memory}}
        );
    auto answer = co_await post("/free", std::move(body), timeouts_.request);
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    co_return Result<>();
}

Task<Result<FileName>> Client::upload(
    std::string folder, std::string filename, std::string content_type, std::string bytes
) {
    const auto make = [folder, filename, content_type, bytes = std::move(bytes)]() mutable {
        std::vector<net::FormPart> parts;
        parts.push_back({"type", std::nullopt, "", "input"});
        parts.push_back({"subfolder", std::nullopt, "", folder});
        parts.push_back({"image", filename, content_type, std::move(bytes)});
        return net::make_multipart(parts);
    };
    auto form = co_await pool_.run(make);
    auto request = make_request("POST", "/upload/image");
    request.headers.set("Content-Type", std::move(form.content_type));
    request.body = std::move(form.body);
    request.timeout = timeouts_.transfer;
    request.response_bytes_max = kAnswerBytesMax;
    auto response = co_await http_.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    if (!is_success(response->status)) {
        co_return fail(unexpected_status("POST /upload/image", *response));
    }
    const auto document = parse_python(response->body);
    const json::object* answer = document ? document->if_object() : nullptr;
    const auto name = answer == nullptr ? std::nullopt : maybe_text(*answer, "name");
    if (!name || name->empty()) {
        co_return fail(protocol_error("POST /upload/image", "no 'name'"));
    }
    co_return FileName{*name, text_of(*answer, "subfolder"), text_of(*answer, "type")};
}

Task<Result<bool>> Client::has_file(FileName file) {
    auto request = make_request("HEAD", view_target(file));
    request.timeout = timeouts_.request;
    auto response = co_await http_.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    co_return is_success(response->status);
}

Task<Result<std::string>> Client::view(
    FileName file, net::Client::Sink sink, net::Client::Absorb absorb
) {
    auto request = make_request("GET", view_target(file));
    request.timeout = timeouts_.transfer;
    request.response_bytes_max = std::uint64_t{1} << 40;  // the sink has the limit that matters
    auto response = co_await http_.download(std::move(request), std::move(sink), std::move(absorb));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    if (response->status == 404) {
        co_return fail(Code::not_found, "the worker has no file " + file.path());
    }
    if (!is_success(response->status)) {
        co_return fail(unexpected_status("GET /view of " + file.path(), *response));
    }
    const std::string_view type = response->headers.get("Content-Type");
    const std::string_view bare = type.substr(0, type.find(';'));
    co_return std::string(bare.substr(0, bare.find_last_not_of(' ') + 1));
}

Task<Result<std::unique_ptr<Events>>> Client::connect_events(std::string client_id) {
    auto url = net::Url::parse(base_url_);
    if (!url) {
        co_return fail(std::move(url.error()));
    }
    url->scheme = url->is_tls() ? "wss" : "ws";
    if (url->target.ends_with('/')) {
        url->target.pop_back();
    }
    url->target += "/ws?clientId=" + net::percent_encode(client_id);
    net::WebSocketOptions options;
    options.message_bytes_max = kMessageBytesMax;
    options.idle_timeout = kSocketIdle;
    if (!bearer_.empty()) {
        options.headers.set("Authorization", bearer_);
    }
    auto socket =
        co_await http_.connect(url->to_string(), std::move(options), timeouts_.connect, socket_);
    if (!socket) {
        co_return fail(std::move(socket.error()));
    }
    // Must be the first message: later ones are ignored.
    FeatureFlags flags;
    flags.flags["supports_preview_metadata"] = true;
    auto written = co_await (*socket)->write(json::serialize(to_json(flags)), false);
    if (!written) {
        co_return fail(std::move(written.error()));
    }
    co_return std::make_unique<Events>(std::move(*socket), pool_);
}

bool interrupts_by_id(std::string_view version) {
    constexpr std::array<int, 3> kSince{0, 3, 57};
    std::array<int, 3> numbers{};
    const char* at = version.data();
    const char* const end = at + version.size();
    for (int& number : numbers) {
        const auto read = std::from_chars(at, end, number);
        if (read.ec != std::errc()) {
            return false;
        }
        at = read.ptr < end && *read.ptr == '.' ? read.ptr + 1 : read.ptr;
    }
    return numbers >= kSince;
}

}  // namespace comfyd::comfy
