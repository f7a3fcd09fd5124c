#include "support/double/routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/crypto.hpp"
#include "base/id.hpp"
#include "support/double/messages.hpp"
#include "support/double/validation.hpp"

namespace comfyd::support {

using net::Method;
using net::Response;

namespace {

constexpr std::uint64_t kBodyBytesMax = 100 * 1024 * 1024;

std::string query_value(const net::Request& request, std::string_view name) {
    for (const auto& [key, value] : net::parse_query(request.query)) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

std::optional<std::int64_t> to_int(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(number)
                                                                    : std::nullopt;
}

bool is_true(const json::object& in, std::string_view key) {
    const auto* value = json::find(in, key);
    return value && *value == json::value(true);
}

std::vector<std::string> strings_of(const json::object& in, std::string_view key) {
    std::vector<std::string> strings;
    const auto* list = json::find(in, key);
    for (const auto& entry : list && list->is_array() ? list->get_array() : json::array{}) {
        if (entry.is_string()) {
            strings.emplace_back(entry.get_string());
        }
    }
    return strings;
}

}  // namespace

Response json_answer(const json::value& body, int status) {
    Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json; charset=utf-8");
    response.body = json::serialize_python(body);
    return response;
}

Response prompt_error(json::object error, json::object node_errors) {
    return json_answer(
        json::object{{"error", std::move(error)}, {"node_errors", std::move(node_errors)}}, 400
    );
}

Response empty_answer(int status) {
    Response response;
    response.status = status;
    return response;
}

Response trouble() {
    Response response;
    response.status = 500;
    response.headers.set("Content-Type", "text/plain; charset=utf-8");
    response.body = "500 Internal Server Error\n\nServer got itself in trouble";
    return response;
}

// A path that ends with '/' stands for all that begin with it. /jobs exists only below /api.
const Routes::Route Routes::kRoutes[] = {
    {Method::get, "/prompt", &Routes::get_prompt},
    {Method::get, "/queue", &Routes::get_queue},
    {Method::post, "/queue", &Routes::post_queue},
    {Method::get, "/history", &Routes::get_history},
    {Method::get, "/history/", &Routes::get_history_entry},
    {Method::post, "/history", &Routes::post_history},
    {Method::post, "/interrupt", &Routes::post_interrupt},
    {Method::post, "/free", &Routes::post_free},
    {Method::get, "/system_stats", &Routes::get_system_stats},
    {Method::get, "/features", &Routes::get_features},
    {Method::get, "/object_info", &Routes::get_object_info},
    {Method::get, "/object_info/", &Routes::get_object_info_entry},
    {Method::get, "/models/", &Routes::get_models},
    {Method::get, "/node_replacements", &Routes::get_replacements},
    {Method::get, "/comfyd/classes", &Routes::get_pack_classes},
    {Method::post, "/comfyd/validate", &Routes::post_pack_validate},
    {Method::post, "/comfyd/lead", &Routes::post_pack_lead},
    {Method::get, "/embeddings", &Routes::get_empty_list},
    {Method::get, "/extensions", &Routes::get_empty_list},
    {Method::post, "/upload/image", &Routes::post_upload},
    {Method::get, "/view", &Routes::get_view},
    {Method::get, "/api/jobs", &Routes::get_jobs},
    {Method::post, "/api/jobs/cancel", &Routes::post_cancel_jobs},
    {Method::get, "/api/jobs/", &Routes::get_job},
    {Method::post, "/api/jobs/", &Routes::post_cancel_job},
    {Method::get, "/worker/v1/status", &Routes::get_agent_status},
    {Method::get, "/_double/executions", &Routes::get_executions},
    {Method::get, "/_double/faults", &Routes::get_faults},
    {Method::post, "/_double/faults", &Routes::post_faults},
};

Task<> Routes::handle(net::Exchange& exchange) {
    std::string path = exchange.request().path;
    if (path.starts_with("/api/") && !path.starts_with("/api/jobs")) {
        path.erase(0, 4);
    }
    if (!path.starts_with("/_double/")) {
        core_.executions.asked_meanwhile[path] += core_.current_node.empty() ? 0 : 1;
        const bool go_on = co_await pass_faults(exchange, path);
        if (!go_on) {
            co_return;
        }
    }
    if (path == "/ws") {
        co_await serve_websocket(exchange);
        co_return;
    }
    if (exchange.request().method == Method::options) {
        co_await exchange.send(empty_answer());
        co_return;
    }
    co_await dispatch(exchange, std::move(path));
}

// False: the request has been dealt with.
Task<bool> Routes::pass_faults(net::Exchange& exchange, const std::string& path) {
    if (core_.crashed) {
        co_await sleep_for(std::chrono::hours(1));  // until the sockets are closed
        co_return false;
    }
    if (core_.faults.slow_http > 0) {
        const bool slept = co_await sleep_for(Millis(core_.faults.slow_http));
        if (!slept) {
            co_return false;
        }
    }
    if (core_.faults.http_500 > 0 && path.starts_with(core_.faults.http_500_path)) {
        --core_.faults.http_500;
        co_await exchange.send(trouble());
        co_return false;
    }
    co_return true;
}

Task<> Routes::dispatch(net::Exchange& exchange, std::string path) {
    Call call{exchange};
    auto body = co_await exchange.read_body(kBodyBytesMax);
    if (!body) {
        if (body.error().code == Code::payload_too_large) {
            co_await exchange.send(empty_answer(413));
        }
        co_return;
    }
    call.body = std::move(*body);
    const Method method =
        exchange.request().method == Method::head ? Method::get : exchange.request().method;
    if (path == "/prompt" && method == Method::post) {
        co_await post_prompt(exchange, std::move(call.body));
        co_return;
    }
    bool known = false;
    for (const auto& route : kRoutes) {
        const std::string_view pattern = route.path;
        const bool open_end = pattern.ends_with('/');
        if (open_end ? !path.starts_with(pattern) : path != pattern) {
            continue;
        }
        known = true;
        if (route.method != method) {
            continue;
        }
        if (open_end) {
            call.rest =
                net::percent_decode(std::string_view(path).substr(pattern.size())).value_or("");
        }
        auto response = (this->*route.answer)(call);
        co_await exchange.send(std::move(response));
        co_return;
    }
    Response response = empty_answer(known ? 405 : 404);
    if (known) {
        response.headers.set("Content-Type", "text/plain; charset=utf-8");
        response.body = "405: Method Not Allowed";
    }
    co_await exchange.send(std::move(response));
}

Task<> Routes::serve_websocket(net::Exchange& exchange) {
    if (core_.faults.ws_refuse) {
        co_await exchange.send(empty_answer(503));
        co_return;
    }
    const auto greeting = [this](const std::string& client_id) {
        std::vector<std::string> messages;
        if (core_.faults.run.ws_silence) {
            return messages;
        }
        messages.push_back(status_message(core_.queue.remaining(), client_id));
        const auto& running = core_.queue.running();
        if (running && running->has_client && running->client_id == client_id &&
            !core_.current_node.empty()) {
            messages.push_back(
                R"({"type": "executing", "data": {"node": )" + quote(core_.current_node) + "}}"
            );
        }
        return messages;
    };
    co_await core_.hub.serve(
        exchange,
        query_value(exchange.request(), "clientId"),
        greeting,
        json::serialize_python(features()),
        writers_
    );
}

Task<> Routes::post_prompt(net::Exchange& exchange, std::string body) {
    PromptPtr prompt;
    auto response = accept(body, prompt);
    if (prompt && core_.faults.no_response > 0) {
        --core_.faults.no_response;
        // The answer's head is written and then the connection breaks: the client cannot know.
        co_await exchange.begin_stream(std::move(response));
    } else {
        co_await exchange.send(std::move(response));
    }
    if (prompt) {
        announce(prompt);
    }
}

// Only now may it start: no event of a prompt goes out before the answer to its submission.
void Routes::announce(const PromptPtr& prompt) {
    prompt->announced = true;
    core_.send_status();
    core_.wake.notify();
}

Response Routes::accept(const std::string& body, PromptPtr& accepted) {
    auto document = json::parse(body);
    if (!document) {
        return trouble();
    }
    auto* request = document->if_object();
    const bool empty =
        document->is_array();  // has no "prompt" in it, which is all the real server looks for
    if (!request && !empty) {
        return trouble();
    }
    auto prompt = std::make_shared<Prompt>();
    if (request && !number(*request, *prompt)) {
        return trouble();
    }
    auto* graph = request ? request->if_contains("prompt") : nullptr;
    if (!graph) {
        return prompt_error(
            make_prompt_error("no_prompt", "No prompt provided", "No prompt provided")
        );
    }
    const auto is_node = [](const auto& member) { return member.value().is_object(); };
    if (!graph->is_object() ||
        !std::all_of(graph->get_object().begin(), graph->get_object().end(), is_node)) {
        return trouble();
    }
    if (!identify(*request, *prompt)) {
        return prompt_error(make_prompt_error(
            "invalid_prompt_id",
            "prompt_id must be a valid UUID",
            "prompt_id must be a UUID string in canonical lowercase hyphenated form; omit it to "
            "let the server "
            "generate one"
        ));
    }
    const auto* targets = json::find(*request, "partial_execution_targets");
    const auto* extra = request->if_contains("extra_data");
    if ((targets && !targets->is_array()) || (extra && !extra->is_object())) {
        return trouble();
    }
    core_.look_at_models();
    auto verdict = validate(
        graph->get_object(),
        targets ? &targets->get_array() : nullptr,
        core_.catalogue,
        core_.files,
        core_.behaviour
    );
    if (verdict.error) {
        return prompt_error(std::move(*verdict.error), std::move(verdict.node_errors));
    }
    prompt->graph = std::move(graph->get_object());
    prompt->outputs = std::move(verdict.outputs);
    if (auto marked = complete(*request, *prompt); !marked) {
        return prompt_error(make_prompt_error("unknown_fault", marked.error().message, ""));
    }
    if (auto refused = refuse_prompt(*request, *prompt)) {
        return std::move(*refused);
    }
    if (!core_.queue.add(prompt)) {
        // The real server's heap breaks over two equal entries, and its worker dies at the next
        // dequeue.
        core_.faults.dead_worker = true;
        return trouble();
    }
    remember(*prompt);
    accepted = prompt;
    return json_answer(json::object{
        {"prompt_id", prompt->id},
        {"number", prompt->number},
        {"node_errors", std::move(verdict.node_errors)}
    });
}

// False when the client's number is none. The counter moves also for prompts that are refused
// later.
bool Routes::number(const json::object& request, Prompt& prompt) {
    if (const auto* given = request.if_contains("number")) {
        if (!given->is_number()) {
            return false;
        }
        prompt.order = given->to_number<double>();
        prompt.number = prompt.order;
        return true;
    }
    const std::int64_t next = core_.counter++;
    prompt.number = is_true(request, "front") ? -next : next;
    prompt.order = static_cast<double>(prompt.number.get_int64());
    return true;
}

// False when the client's id is not accepted.
bool Routes::identify(const json::object& request, Prompt& prompt) const {
    const auto* given = json::find(request, "prompt_id");
    if (!given) {
        prompt.id = Uuid::make(SystemClock().now()).to_string();
        return true;
    }
    prompt.id =
        given->is_string() ? std::string(given->get_string()) : json::serialize_python(*given);
    const auto parsed = Uuid::parse(prompt.id);
    return !core_.behaviour.uuid_only || (parsed && parsed->to_string() == prompt.id);
}

// Extra data, client, faults and content; fails over an unknown fault.
Result<> Routes::complete(const json::object& request, Prompt& prompt) const {
    if (const auto* extra = request.if_contains("extra_data")) {
        prompt.extra_data = extra->get_object();
    }
    if (const auto* client = json::find(request, "client_id"); client && client->is_string()) {
        prompt.extra_data["client_id"] = *client;
    }
    if (const auto* client = json::find(prompt.extra_data, "client_id");
        client && client->is_string()) {
        prompt.client_id = std::string(client->get_string());
        prompt.has_client = true;
    }
    if (core_.behaviour.create_time) {
        prompt.extra_data["create_time"] = unix_ms_now();
    }
    for (const auto& [id, node] : prompt.graph) {
        const auto* marker = json::find(inputs_of(prompt.graph, id), "_fault");
        auto set = marker && marker->is_string()
                       ? prompt.faults.set_from_marker(marker->get_string())
                       : Result<>();
        if (!set) {
            return set;
        }
    }
    prompt.content = to_hex(sha256(json::serialize_canonical(prompt.graph)));
    return {};
}

void Routes::remember(const Prompt& prompt) {
    constexpr std::size_t kAcceptedMax = 10'000;
    core_.accepted.push_back({
        {"prompt_id", prompt.id},
        {"number", prompt.number},
        {"prompt", prompt.graph},
        {"extra_data", prompt.extra_data},
    });
    if (core_.accepted.size() > kAcceptedMax) {
        core_.accepted.pop_front();
    }
}

Response Routes::get_prompt(Call&) {
    return json_answer(
        json::object{{"exec_info", json::object{{"queue_remaining", core_.queue.remaining()}}}}
    );
}

Response Routes::get_queue(Call&) {
    json::array running;
    json::array pending;
    if (core_.queue.running()) {
        running.push_back(core_.queue.running()->to_json());
    }
    for (const auto& prompt : core_.queue.pending()) {
        pending.push_back(prompt->to_json());
    }
    return json_answer(
        json::object{{"queue_running", std::move(running)}, {"queue_pending", std::move(pending)}}
    );
}

Response Routes::post_queue(Call& call) {
    const auto request = json::parse_object(call.body);
    if (!request) {
        return trouble();
    }
    if (is_true(*request, "clear")) {
        core_.queue.clear_pending();
        core_.send_status();
    }
    for (const auto& id : strings_of(*request, "delete")) {
        if (core_.queue.erase_pending(id)) {
            core_.send_status();
        }
    }
    return empty_answer();
}

Response Routes::get_history(Call& call) {
    const auto& request = call.exchange.request();
    const std::string max_text = query_value(request, "max_items");
    const std::string offset_text = query_value(request, "offset");
    const auto max_items = to_int(max_text);
    const auto offset = to_int(offset_text);
    if ((!max_text.empty() && !max_items) || (!offset_text.empty() && !offset)) {
        return trouble();
    }
    auto entries = core_.history.all();
    const auto size = static_cast<std::int64_t>(entries.size());
    const std::int64_t count = max_items ? std::clamp<std::int64_t>(*max_items, 0, size) : size;
    const std::int64_t first = offset && *offset >= 0 ? std::min(*offset, size) : size - count;
    json::object answer;
    for (std::int64_t i = first; i < std::min(first + count, size); ++i) {
        const auto* entry = entries[static_cast<std::size_t>(i)];
        answer[entry->prompt->id] = entry->to_json();
    }
    return json_answer(answer);
}

Response Routes::get_history_entry(Call& call) {
    json::object answer;
    if (const auto* entry = core_.history.find(call.rest)) {
        answer[call.rest] = entry->to_json();
    }
    auto response = json_answer(answer);
    if (core_.broken_history_id == call.rest) {
        core_.broken_history_id.clear();
        response.body.resize(response.body.size() / 2);
    }
    return response;
}

Response Routes::post_history(Call& call) {
    const auto request = json::parse_object(call.body);
    if (!request) {
        return trouble();
    }
    if (is_true(*request, "clear")) {
        core_.history.clear();
    }
    for (const auto& id : strings_of(*request, "delete")) {
        core_.history.erase(id);
    }
    return empty_answer();
}

Response Routes::post_interrupt(Call& call) {
    const auto request = json::parse(call.body);
    if (request && request->is_array()) {
        return trouble();
    }
    std::string id;
    if (request && request->is_object() && core_.behaviour.targeted_interrupt) {
        const auto* given = json::find(request->get_object(), "prompt_id");
        id = given && given->is_string() ? std::string(given->get_string()) : "";
    }
    core_.interrupt_running(id);
    return empty_answer();
}

Response Routes::post_free(Call& call) {
    const auto request = json::parse_object(call.body);
    if (!request) {
        return trouble();
    }
    ++core_.executions.frees;
    core_.thread_ended = core_.thread_ended || core_.gpu_lost;
    if (is_true(*request, "free_memory")) {
        core_.cache.clear();
    }
    return empty_answer();
}

}  // namespace comfyd::support
