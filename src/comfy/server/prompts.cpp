// POST /prompt, the queue, and stopping what waits or runs.
#include <utility>

#include "base/id.hpp"
#include "comfy/members.hpp"
#include "comfy/server/routes.hpp"

namespace comfyd::comfy::server {
namespace {

constexpr std::size_t kIdsMax = 1'000;  // of one request

net::Response encode(PromptRefusal refusal) {
    json::object body;
    body["error"] = std::move(refusal.error);
    body["node_errors"] = std::move(refusal.node_errors);
    return json_reply(refusal.status, body);
}

Task<> answer_done(Call& call, Result<> done) {
    return answer(call, done ? empty_reply(200) : encode_error(done.error()));
}

net::Response encode_cancelled(bool any) {
    json::object body;
    body["cancelled"] = any;
    return json_reply(200, body);
}

json::array without_uuids(const json::array& ids) {
    json::array invalid;
    for (const json::value& id : ids) {
        if (!id.is_string() || !Uuid::parse(std::string_view(id.get_string()))) {
            invalid.push_back(id);
        }
    }
    return invalid;
}

}  // namespace

Task<> get_prompt(Call& call, Backend& backend) {
    auto count = co_await backend.unfinished();
    const json::object body{{"exec_info", {{"queue_remaining", count}}}};
    co_await answer(call, json_reply(200, body));
}

Task<> post_prompt(Call& call, Backend& backend) {
    auto text = co_await read_text(call, backend.limits().prompt_bytes_max);
    if (!text) {
        co_await answer(call, encode_error(text.error()));
        co_return;
    }
    PromptPost post{
        std::move(*text), std::string(call.request().headers.get("Comfy-Usage-Source"))
    };
    auto decided = co_await backend.submit(std::move(post));
    if (!decided) {
        co_await answer(call, encode_error(decided.error()));
        co_return;
    }
    if (!*decided) {
        co_await answer(call, encode(std::move(decided->error())));
        co_return;
    }
    // Clients rely on it that nothing is told of a prompt before its submission is answered.
    const AcceptedPrompt accepted = std::move(**decided);
    json::object body;
    body["prompt_id"] = accepted.id;
    body["number"] = accepted.number;
    body["node_errors"] = accepted.node_errors;
    co_await answer(call, json_reply(200, body));
}

Task<> get_queue(Call& call, Backend& backend) {
    auto queue = co_await backend.queue();
    if (!queue) {
        co_await answer(call, encode_error(queue.error()));
        co_return;
    }
    auto response = co_await backend.disk().run([&queue = *queue] {
        return json_reply(200, to_json(std::move(queue)));
    });
    co_await answer(call, std::move(response));
}

Task<> post_queue(Call& call, Backend& backend) {
    auto body = co_await read_members(call, backend.limits().json_bytes_max);
    if (!body) {
        co_await answer(call, encode_error(body.error()));
        co_return;
    }
    Result<> done;
    if (is_true(*body, "clear")) {
        done = co_await backend.clear_queue();
    }
    auto ids = texts_of(*body, "delete");
    if (!ids.empty()) {
        done = co_await backend.dequeue(std::move(ids));
    }
    co_await answer_done(call, std::move(done));
}

Task<> post_interrupt(Call& call, Backend& backend) {
    auto body = co_await read_json(call, backend.limits().json_bytes_max);
    if (!body) {
        co_await answer(call, encode_error(body.error()));
        co_return;
    }
    // No body, or one that is no JSON, means whatever runs; another one must say what it means.
    if (!body->is_null() && !body->is_object()) {
        co_await answer(call, trouble());
        co_return;
    }
    auto done = co_await backend.interrupt(
        body->is_object() ? text_of(body->get_object(), "prompt_id") : std::string()
    );
    co_await answer_done(call, std::move(done));
}

Task<> post_free(Call& call, Backend& backend) {
    auto body = co_await read_json(call, backend.limits().json_bytes_max);
    if (!body || !body->is_object()) {
        co_await answer(call, body ? trouble() : encode_error(body.error()));
        co_return;
    }
    const bool models = is_true(body->get_object(), "unload_models");
    const bool results = is_true(body->get_object(), "free_memory");
    if (models || results) {
        co_await backend.free_memory(models, results);
    }
    co_await answer(call, empty_reply(200));
}

Task<> cancel_job(Call& call, Backend& backend) {
    auto done = co_await backend.cancel(call.parameters.at(0));
    co_await answer(call, done ? encode_cancelled(*done) : encode_error(done.error()));
}

Task<> cancel_jobs(Call& call, Backend& backend) {
    auto body = co_await read_members(call, backend.limits().json_bytes_max);
    if (!body) {
        co_await answer(call, encode_error(body.error()));
        co_return;
    }
    const json::array* ids = array_of(*body, "job_ids");
    if (ids == nullptr || ids->size() > kIdsMax) {
        co_await answer(call, error_reply(400, "job_ids must be a list of at most 1000 job ids"));
        co_return;
    }
    if (json::array invalid = without_uuids(*ids); !invalid.empty()) {
        json::object refusal;
        refusal["error"] = "job_ids must be valid UUIDs";
        refusal["invalid_ids"] = std::move(invalid);
        co_await answer(call, json_reply(400, refusal));
        co_return;
    }
    bool any = false;
    for (const json::value& id : *ids) {
        auto done = co_await backend.cancel(std::string(id.get_string()));
        any = any || (done && *done);
    }
    co_await answer(call, encode_cancelled(any));
}

}  // namespace comfyd::comfy::server
