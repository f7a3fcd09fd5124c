// POST /prompt, the queue, and the socket that tells of both.
#include <utility>
#include <variant>

#include "base/log.hpp"
#include "comfy/members.hpp"
#include "comfy/owner.hpp"
#include "comfy/replies.hpp"
#include "standalone/routes.hpp"
#include "workflow/rules/prompt_request.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::standalone {
namespace {

constexpr std::size_t kClientIdBytesMax = 256;

struct Accepted {
    std::shared_ptr<Prompt> prompt;
    json::object node_errors;
};
// Accepted, or the body of the 400 answer.
using Decision = std::variant<Accepted, json::object>;

json::object refusal(json::object error, json::object node_errors = {}) {
    json::object body;
    body["error"] = std::move(error);
    body["node_errors"] = std::move(node_errors);
    return body;
}

void number(Core& core, const workflow::PromptRequest& request, Prompt& prompt) {
    if (request.number) {
        prompt.number = *request.number;
        prompt.order = *request.number;
        return;
    }
    const std::int64_t counted = core.next_number++;
    const std::int64_t signed_number = request.front ? -counted : counted;
    prompt.number = signed_number;
    prompt.order = static_cast<double>(signed_number);
}

// Empty where it may not say, or says none that could be the name of a folder.
std::string take_owner(const Options& options, json::object& extra_data) {
    std::string owner = options.behind_gateway ? comfy::text_of(extra_data, comfy::kOwnerKey) : "";
    extra_data.erase(comfy::kOwnerKey);
    const bool plain = owner.find_first_of("./") == std::string::npos;
    return plain ? owner : std::string();
}

// On a thread of the pool.
Decision decide(Core& core, const std::string& text, const std::string& usage_source) {
    auto body = workflow::read_prompt_body(text);
    if (!body) {
        return refusal(std::move(body.error()));
    }
    auto request = workflow::parse_prompt_request(std::move(*body));
    if (!request) {
        return refusal(std::move(request.error()));
    }
    auto prompt = std::make_shared<Prompt>();
    number(core, *request, *prompt);
    prompt->created = core.clock.now();
    prompt->id = request->prompt_id.value_or(std::string());
    if (prompt->id.empty()) {
        prompt->id = Uuid::make(prompt->created).to_string();
    }
    prompt->graph = std::move(request->prompt);
    prompt->owner = take_owner(core.options, request->extra_data);
    const engine::Owner owner = core.owner_named(prompt->owner);
    engine::Validation verdict = core.engine.validate(
        prompt->graph, request->targets ? &*request->targets : nullptr, &owner
    );
    if (verdict.outputs_to_execute.empty()) {
        return refusal(std::move(verdict.error), std::move(verdict.node_errors));
    }
    prompt->outputs = std::move(verdict.outputs_to_execute);
    prompt->client_id = std::move(request->client_id);
    prompt->extra_data = std::move(request->extra_data);
    // For nodes that call ComfyUI's own services, of which there are none here.
    prompt->extra_data.erase("auth_token_comfy_org");
    prompt->extra_data.erase("api_key_comfy_org");
    if (!usage_source.empty()) {
        prompt->extra_data["comfy_usage_source"] = usage_source;
    }
    prompt->extra_data["create_time"] = to_unix_ms(prompt->created);
    prompt->bytes = text.size() + 1'024;
    prompt->shown_whole = !core.options.behind_gateway;  // which has it, and may ask often
    return Accepted{std::move(prompt), std::move(verdict.node_errors)};
}

Decision decide_safely(Core& core, const std::string& text, const std::string& usage_source) {
    try {
        return decide(core, text, usage_source);
    } catch (const std::exception& exception) {
        log::error("a prompt could not be checked", {{"reason", exception.what()}});
        return refusal(workflow::make_prompt_error(
            "internal", "The prompt could not be checked", exception.what()
        ));
    }
}

}  // namespace

Task<> get_prompt(Call& call, Core& core) {
    json::object info;
    info["queue_remaining"] = core.remaining();
    json::object body;
    body["exec_info"] = std::move(info);
    co_await answer(call, comfy::json_reply(200, body));
}

Task<> post_prompt(Call& call, Core& core) {
    auto text = co_await read_bytes(call, core);
    if (!text) {
        co_return;
    }
    const std::string source(call.request().headers.get("Comfy-Usage-Source"));
    auto decision = co_await core.pool.run([&core, &text = *text, &source] {
        return decide_safely(core, text, source);
    });
    if (const json::object* refused = std::get_if<json::object>(&decision)) {
        co_await answer(call, comfy::json_reply(400, *refused));
        co_return;
    }
    Accepted& accepted = std::get<Accepted>(decision);
    accepted.prompt->sequence = core.next_sequence++;
    const PromptPtr prompt = accepted.prompt;
    if (!core.queue.add(prompt)) {
        const json::object refused = refusal(workflow::make_prompt_error(
            "queue_full", "The queue is full", "wait until prompts have run, or clear the queue"
        ));
        co_await answer(call, comfy::json_reply(503, refused));
        co_return;
    }
    core.logs.add("got prompt");
    json::object body;
    body["prompt_id"] = prompt->id;
    body["number"] = prompt->number;
    body["node_errors"] = std::move(accepted.node_errors);
    co_await answer(call, comfy::json_reply(200, body));
    // Clients rely on it that nothing is told of a prompt before its submission is answered.
    core.hub.hesitate(prompt->client_id);
    if (core.queue.announce(prompt->sequence)) {
        core.tell_status();
        core.wake.notify();
    }
}

Task<> get_queue(Call& call, Core& core) {
    std::vector<PromptPtr> pending(core.queue.pending().begin(), core.queue.pending().end());
    const PromptPtr running = core.running ? core.running->prompt : nullptr;
    auto response = co_await core.pool.run([pending = std::move(pending), running] {
        json::array items;
        for (const PromptPtr& prompt : pending) {
            items.push_back(prompt->to_json());
        }
        json::array now;
        if (running) {
            now.push_back(running->to_json());
        }
        json::object body;
        body["queue_running"] = std::move(now);
        body["queue_pending"] = std::move(items);
        return comfy::json_reply(200, body);
    });
    co_await answer(call, std::move(response));
}

Task<> post_queue(Call& call, Core& core) {
    auto body = co_await read_object(call, core);
    if (!body) {
        co_return;
    }
    bool changed = false;
    if (is_true(*body, "clear")) {
        changed = core.queue.clear() > 0;
    }
    for (const std::string& id : comfy::texts_of(*body, "delete")) {
        changed = core.queue.erase(id) > 0 || changed;
    }
    if (changed) {
        core.tell_status();
    }
    co_await answer(call, comfy::empty_reply(200));
}

Task<> post_interrupt(Call& call, Core& core) {
    auto body = co_await read_json(call, core);
    if (!body) {
        co_return;
    }
    if (!body->is_object() && !body->is_null()) {
        co_await answer(call, comfy::error_reply(400, "the body must be an object, or empty"));
        co_return;
    }
    core.interrupt(
        body->is_object() ? comfy::text_of(body->get_object(), "prompt_id") : std::string()
    );
    co_await answer(call, comfy::empty_reply(200));
}

Task<> post_free(Call& call, Core& core) {
    auto body = co_await read_object(call, core);
    if (!body) {
        co_return;
    }
    if (is_true(*body, "free_memory")) {
        core.forget_results = true;
        core.wake.notify();
    }
    co_await answer(call, comfy::empty_reply(200));
}

Task<> serve_socket(Call& call, Core& core) {
    const std::string client_id(call.query_value("clientId").substr(0, kClientIdBytesMax));
    json::object features;
    features["type"] = "feature_flags";
    features["data"] = comfy::server_features(core.options.body_bytes_max);
    const auto greeting = [&core](const std::string& id) {
        comfy::Status status;
        status.queue_remaining = static_cast<std::int64_t>(core.remaining());
        status.sid = id;
        std::vector<std::string> messages{comfy::encode_text(status)};
        // A client that comes back in the middle of its run is told where it is.
        if (core.running && core.running->prompt->client_id == id &&
            !core.running->story->current_node().empty()) {
            json::object data;
            data["node"] = core.running->story->current_node();
            json::object message;
            message["type"] = "executing";
            message["data"] = std::move(data);
            messages.push_back(json::serialize_python(message));
        }
        return messages;
    };
    co_await core.hub.serve(call.exchange, client_id, greeting, json::serialize_python(features));
}

}  // namespace comfyd::standalone
