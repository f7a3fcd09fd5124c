#include "agent/front.hpp"

#include <utility>

#include "agent/content_ticket.hpp"
#include "agent/sync_prompt.hpp"
#include "base/crypto.hpp"
#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "comfy/client.hpp"
#include "comfy/prompt_sync.hpp"
#include "net/host_rules.hpp"
#include "net/static_files.hpp"

namespace comfyd::agent {
namespace {

namespace shapes = comfy::prompt_sync;

constexpr std::string_view kContents = kContentsPath;
constexpr int kBusyRetrySeconds = 1;
constexpr std::uint64_t kWishBytesMax = 64 * 1024;
constexpr std::string_view kRetryAfter = "retry_after";

net::Response json_answer(int status, const json::object& body) {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    response.body = json::serialize(body);
    return response;
}

// Whose place in `count` it is, for as long as it lives.
class Place {
public:
    explicit Place(std::size_t& count) : count_(count) { ++count_; }
    ~Place() { --count_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

private:
    std::size_t& count_;
};

// A page that has the token may use it from anywhere: nothing here is given to a browser by itself,
// as a cookie would be.
net::Headers cors_headers(const FrontOptions& options) {
    net::Headers headers;
    if (!options.token.empty()) {
        headers.set("Access-Control-Allow-Origin", "*");
        headers.set("Access-Control-Expose-Headers", "*");
    }
    return headers;
}

// Asked by a page of another site through the browser of somebody who may use this.
bool is_foreign_page(const net::Request& request) {
    const std::string_view origin = request.headers.get("Origin");
    const auto scheme = origin.find("://");
    const std::string_view from =
        scheme == std::string_view::npos ? origin : origin.substr(scheme + 3);
    // Without a token it listens on loopback alone; a site's own name may lead there, too.
    return !net::HostRules::loopback().allows(request.headers.get("Host")) ||
           request.headers.get("Sec-Fetch-Site") == "cross-site" ||
           (!origin.empty() && from != request.headers.get("Host"));
}

// Addresses of other agents; more than a few are of no use.
std::vector<std::string> take_peers(json::object& from) {
    constexpr std::size_t kPeersMax = 4;
    std::vector<std::string> peers;
    const json::array* list = json::find_array(from, "peers").value_or(nullptr);
    for (const json::value& one : list == nullptr ? json::array() : *list) {
        if (one.is_string() && peers.size() < kPeersMax) {
            peers.emplace_back(one.get_string());
        }
    }
    from.erase("peers");
    return peers;
}

// Where the gateway says that a source of its own is had from; of the gateway itself the path
// alone.
std::string take_link(json::object& from, const std::string& gateway) {
    std::string link = json::find_string(from, "link").value_or(std::nullopt).value_or("");
    from.erase("link");
    return link.starts_with('/') ? gateway + link : link;
}

std::string query_value(const net::Request& request, std::string_view name) {
    for (auto& [key, value] : net::parse_query(request.query)) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

}  // namespace

Front::Front(Parts parts, FrontOptions options)
    : p_(parts),
      options_(std::move(options)),
      cors_(cors_headers(options_)),
      forwarder_(parts.executor, parts.http, parts.comfyui, cors_) {}

net::Response Front::refuse(Error error) const {
    shapes::Trouble trouble;
    trouble.error = std::move(error);
    net::Response response = json_answer(
        shapes::http_status(trouble.error.code), shapes::encode_trouble(trouble, p_.clock.now())
    );
    if (trouble.error.details.contains(boost::json::string_view(kRetryAfter))) {
        response.headers.set("Retry-After", std::to_string(kBusyRetrySeconds));
    }
    return response;
}

Result<> Front::admit(const net::Request& request) const {
    if (options_.token.empty()) {
        return is_foreign_page(request)
                   ? Result<>(fail(Code::forbidden, "this page may not use this ComfyUI"))
                   : Result<>();
    }
    constexpr std::string_view kBearer = "Bearer ";
    const std::string_view sent = request.headers.get("Authorization");
    const bool has_scheme = sent.size() > kBearer.size() &&
                            net::equal_ignoring_case(sent.substr(0, kBearer.size()), kBearer);
    if (has_scheme && equal_constant_time(sent.substr(kBearer.size()), options_.token)) {
        return {};
    }
    return fail(Code::unauthorized, "send the worker's token: Authorization: Bearer …");
}

Task<> Front::handle(net::Exchange& exchange) {
    const net::Request& request = exchange.request();
    net::Response response;
    if (request.method == net::Method::options) {
        // As ComfyUI answers it; browsers ask before they send the token.
        response.headers.set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE");
        response.headers.set("Access-Control-Allow-Headers", "Authorization, Content-Type");
    } else if (request.path == "/healthz") {
        response = json_answer(200, {{"status", "ok"}});
    } else if (is_content(request) && may_have_content(request)) {
        exchange.trust_peer();
        const Place place(requests_);
        co_await send_content(exchange);
        co_return;
    } else if (auto admitted = admit(request); !admitted) {
        response = refuse(std::move(admitted.error()));
        if (response.status == 401) {
            response.headers.set("WWW-Authenticate", "Bearer");
        }
    } else if (asked_ = std::chrono::steady_clock::now(); requests_ >= options_.requests_max) {
        response = refuse(Error(
            Code::worker_unavailable,
            "too many requests at once: at most " + std::to_string(options_.requests_max),
            {{kRetryAfter, kBusyRetrySeconds}}
        ));
    } else if (Forwarder::wants_socket(request)) {
        exchange.trust_peer();
        if (sockets_ < options_.sockets_max) {
            const Place place(sockets_);
            co_await hand_on(exchange);
            co_return;
        }
        response = refuse(Error(
            Code::worker_unavailable,
            "too many WebSockets at once: at most " + std::to_string(options_.sockets_max),
            {{kRetryAfter, kBusyRetrySeconds}}
        ));
    } else {
        exchange.trust_peer();
        const Place place(requests_);
        response = co_await answer(exchange, request.path);
        if (response.status == 0) {
            co_await hand_on(exchange);
            co_return;
        }
    }
    co_await send(exchange, std::move(response));
}

Task<> Front::send(net::Exchange& exchange, net::Response response) const {
    for (const auto& [name, value] : cors_.all()) {
        response.headers.set(name, value);
    }
    auto sent = co_await exchange.send(std::move(response));
    static_cast<void>(sent);  // a client that is gone needs no answer
}

// Status 0: it is ComfyUI's to answer.
Task<net::Response> Front::answer(net::Exchange& exchange, std::string path) {
    const net::Method method = exchange.request().method;
    net::Response response;
    response.status = 0;
    const bool is_new_prompt = Forwarder::is_prompt(exchange.request()) ||
                               (method == net::Method::post && path == "/prompt_sync");
    if (is_new_prompt && p_.status.is_draining()) {
        response = refuse(Error(Code::shutting_down, "this worker takes no new prompts: it stops"));
    } else if (method == net::Method::get && path == "/health") {
        response = co_await health();
    } else if (method == net::Method::post && path == "/prompt_sync") {
        response = co_await prompt_sync(exchange);
    } else if (method == net::Method::get && path == "/worker/v1/status") {
        auto shown = co_await p_.status.read();
        response = json_answer(200, shown);
    } else if (method == net::Method::get && path == "/worker/v1/files") {
        const ModelFiles* files = p_.status.files();
        response = files == nullptr
                       ? refuse(Error(Code::not_found, "the files of this ComfyUI are not known"))
                       : json_answer(200, files->to_json());
    } else if (path == "/worker/v1/models" &&
               (method == net::Method::get || method == net::Method::post)) {
        response = co_await models(exchange);
    } else if (method == net::Method::post && path == "/worker/v1/restart") {
        if (p_.comfyui.is_ours()) {
            p_.comfyui.restart("somebody asked for it");
            response = json_answer(202, {{"state", "restarting"}});
        } else {
            response = refuse(Error(Code::conflict, "this ComfyUI is run by somebody else"));
        }
    } else if (!path.starts_with("/worker/") && p_.status.is_fetching()) {
        response = refuse(
            Error(Code::worker_unavailable, "ComfyUI waits for its models: " + p_.status.reason())
        );
    } else if (path.starts_with("/worker/")) {
        response = refuse(Error(Code::not_found, "there is nothing at " + path));
    }
    co_return response;
}

Task<> Front::hand_on(net::Exchange& exchange) {
    auto forwarded = co_await forwarder_.forward(exchange);
    if (!forwarded && !exchange.answered()) {
        net::Response response = refuse(std::move(forwarded.error()));
        co_await send(exchange, std::move(response));
    }
}

Task<net::Response> Front::health() {
    comfy::Client client(p_.http, p_.pool, p_.comfyui.url(), {});
    const double now = static_cast<double>(to_unix_ms(p_.clock.now())) / 1000.0;
    auto queue = co_await client.queue();
    // It may answer before we have seen that it does: a prompt would be refused until then.
    const bool is_ready = p_.comfyui.state() == ComfyUi::State::ready;
    if (!queue || !is_ready) {
        const std::string why = p_.status.reason();
        const std::string otherwise = queue ? "ComfyUI is starting" : queue.error().message;
        co_return json_answer(
            503,
            {{"status", "unhealthy"}, {"error", why.empty() ? otherwise : why}, {"timestamp", now}}
        );
    }
    co_return json_answer(
        200,
        {{"status", "healthy"},
         {"comfyui_server", "connected"},
         {"queue_running", queue->running.size()},
         {"queue_pending", queue->pending.size()},
         {"timestamp", now}}
    );
}

Task<net::Response> Front::models(net::Exchange& exchange) {
    Models* models = p_.status.models();
    if (models == nullptr) {
        co_return refuse(Error(Code::not_found, "the files of this ComfyUI are not known"));
    }
    if (exchange.request().method == net::Method::get) {
        co_return json_answer(200, models->to_json());
    }
    auto body = co_await exchange.read_body(kWishBytesMax);
    if (!body) {
        co_return refuse(std::move(body.error()));
    }
    auto document = json::parse_object(*body);
    models::Ways ways;
    if (document) {
        ways = {take_peers(*document), take_link(*document, options_.gateway)};
    }
    auto wish =
        document ? models::read_wish(*document) : Result<models::ModelWish>(fail(document.error()));
    if (!wish) {
        co_return refuse(std::move(wish.error()));
    }
    auto shown = co_await models->ask(std::move(*wish), std::move(ways));
    if (!shown) {
        co_return refuse(std::move(shown.error()));
    }
    const bool is_ready = *json::find(*shown, "state") == "ready";
    co_return json_answer(is_ready ? 200 : 202, *shown);
}

// With a ticket that the gateway made for it, which is good for this content alone: another agent
// gets no token of this one.
bool Front::may_have_content(const net::Request& request) const {
    const std::string sha256 = request.path.substr(kContents.size());
    const bool is_ticket_good = is_good_ticket(
        options_.token,
        sha256,
        query_value(request, "until"),
        query_value(request, "ticket"),
        p_.clock.now()
    );
    return requests_ < options_.requests_max &&
           (options_.token.empty() ? admit(request).has_value() : is_ticket_good);
}

bool Front::is_content(const net::Request& request) {
    return request.method == net::Method::get && request.path.starts_with(kContents);
}

Task<> Front::send_content(net::Exchange& exchange) {
    Models* models = p_.status.models();
    const std::string sha256 = exchange.request().path.substr(kContents.size());
    std::optional<std::filesystem::path> found;
    if (models != nullptr) {
        found = co_await models->find_content(sha256);
    }
    if (!found) {
        net::Response response = refuse(Error(Code::not_found, "this content is not here"));
        co_await send(exchange, std::move(response));
        co_return;
    }
    net::Response head;
    head.headers.set("Content-Type", "application/octet-stream");
    head.headers.set("ETag", "\"" + sha256 + "\"");
    auto sent = co_await net::send_disk_file(exchange, std::move(head), std::move(*found));
    static_cast<void>(sent);  // a client that is gone needs no answer
}

Task<net::Response> Front::prompt_sync(net::Exchange& exchange) {
    auto body = co_await exchange.read_body(options_.prompt_bytes_max);
    if (!body) {
        co_return refuse(std::move(body.error()));
    }
    if (p_.comfyui.state() != ComfyUi::State::ready) {
        co_return refuse(
            Error(Code::worker_unavailable, "ComfyUI is not there: " + p_.status.reason())
        );
    }
    p_.comfyui.note_work(false);
    auto result = co_await run_prompt(
        {p_.http,
         p_.pool,
         p_.clock,
         p_.comfyui.url(),
         options_.timeout_default,
         exchange,
         [this] { p_.comfyui.note_work(true); }},
        std::move(*body),
        query_value(exchange.request(), "timeout")
    );
    p_.comfyui.note_work(false);
    if (result) {
        co_return json_answer(200, *result);
    }
    const shapes::Trouble& trouble = result.error();
    log::info(
        "a prompt was not done",
        {{"prompt_id", trouble.prompt_id},
         {"code", to_string(trouble.error.code)},
         {"why", log::foreign(trouble.error.message)}}
    );
    co_return json_answer(
        shapes::http_status(trouble.error.code), shapes::encode_trouble(trouble, p_.clock.now())
    );
}

}  // namespace comfyd::agent
