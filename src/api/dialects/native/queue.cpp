// What is asked of prompts that have not ended: the queue, and taking out of it what waits or runs.
#include <algorithm>
#include <utility>

#include "api/dialects/native/routes.hpp"
#include "api/dialects/native/story.hpp"
#include "comfy/members.hpp"

namespace comfyd::api::native {
namespace {

constexpr int kQueueShownMax = 1'000;
constexpr int kPage = 1'000;
constexpr std::size_t kIdsMax = 1'000;  // of one request

std::vector<std::string> ids_in(const json::object& body, std::string_view key) {
    auto ids = comfy::texts_of(body, key);
    ids.resize(std::min(ids.size(), kIdsMax));
    return ids;
}

bool is_true(const json::object& body, std::string_view key) {
    const json::value* value = json::find(body, key);
    return value != nullptr && value->is_bool() && value->get_bool();
}

bool is_waiting(const jobs::Job& job) {
    return job.state == jobs::State::queued || job.state == jobs::State::retry_waiting;
}

Task<Result<json::array>> list_items(
    Context& context, std::string tenant, std::vector<jobs::State> states
) {
    jobs::ListQuery query;
    query.tenant = tenant;
    query.states = std::move(states);
    query.limit = kQueueShownMax;
    auto page = co_await context.services.jobs.list(std::move(query));
    if (!page) {
        co_return fail(std::move(page.error()));
    }
    json::array items;
    for (auto job = page->jobs.rbegin(); job != page->jobs.rend(); ++job) {
        auto spec = co_await context.services.jobs.spec(tenant, job->id);
        if (spec) {
            items.push_back(queue_item(*job, *spec));
        }
    }
    co_return items;
}

// Cancels the tenant's jobs in these states. A job that cannot be cancelled has ended.
Task<Result<>> cancel_all(Context& context, std::string tenant, std::vector<jobs::State> states) {
    jobs::ListQuery query;
    query.tenant = tenant;
    query.states = std::move(states);
    query.limit = kPage;
    for (;;) {
        auto page = co_await context.services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (const jobs::Job& job : page->jobs) {
            auto cancelled = co_await context.services.jobs.cancel(tenant, job.id);
            if (!cancelled && cancelled.error().code != Code::conflict &&
                cancelled.error().code != Code::not_found) {
                co_return fail(std::move(cancelled.error()));
            }
        }
        if (!page->next_cursor) {
            co_return Result<>();
        }
        query.cursor = page->next_cursor;
    }
}

// Cancels those of the jobs with this id that `which` wants. True when any was.
using Which = bool (*)(const jobs::Job&);
Task<Result<bool>> cancel_by_id(
    Context& context, std::string tenant, std::string prompt_id, Which which
) {
    auto found = co_await find_jobs(context, tenant, std::move(prompt_id));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    bool any = false;
    for (const jobs::Job& job : *found) {
        if (!which(job)) {
            continue;
        }
        auto cancelled = co_await context.services.jobs.cancel(tenant, job.id);
        if (!cancelled) {
            co_return fail(std::move(cancelled.error()));
        }
        any = true;
    }
    co_return any;
}

// ComfyUI's lists of ids and this program's answer, whatever became of the single ones.
Task<> answer_done(Call& call, Result<> done) {
    return send(call, done ? empty_reply(200) : encode_native_error(done.error()));
}

bool is_running(const jobs::Job& job) {
    return job.state == jobs::State::running;
}

bool is_unfinished(const jobs::Job& job) {
    return !jobs::is_terminal(job.state);
}

}  // namespace

Task<> get_prompt(Call& call, Context& context) {
    auto count = co_await context.services.jobs.unfinished(call.caller.tenant);
    const json::object body{{"exec_info", {{"queue_remaining", count}}}};
    co_await send(call, json_reply(200, body));
}

Task<> get_queue(Call& call, Context& context) {
    auto running = co_await list_items(context, call.caller.tenant, {jobs::State::running});
    if (!running) {
        co_await send(call, encode_native_error(running.error()));
        co_return;
    }
    auto pending = co_await list_items(
        context, call.caller.tenant, {jobs::State::queued, jobs::State::retry_waiting}
    );
    if (!pending) {
        co_await send(call, encode_native_error(pending.error()));
        co_return;
    }
    json::object body;
    body["queue_running"] = std::move(*running);
    body["queue_pending"] = std::move(*pending);
    co_await send(call, json_reply(200, body));
}

Task<> post_queue(Call& call, Context& context) {
    auto body = co_await read_json(call, context.services);
    if (!body) {
        co_await send(call, encode_native_error(body.error()));
        co_return;
    }
    const json::object wanted = body->is_object() ? body->get_object() : json::object();
    Result<> done;
    if (is_true(wanted, "clear")) {
        done = co_await cancel_all(
            context, call.caller.tenant, {jobs::State::queued, jobs::State::retry_waiting}
        );
    }
    for (std::string& id : ids_in(wanted, "delete")) {
        auto one = co_await cancel_by_id(context, call.caller.tenant, std::move(id), is_waiting);
        if (!one) {
            done = fail(std::move(one.error()));
        }
    }
    co_await answer_done(call, std::move(done));
}

Task<> post_interrupt(Call& call, Context& context) {
    auto body = co_await read_json(call, context.services);
    if (!body) {
        co_await send(call, encode_native_error(body.error()));
        co_return;
    }
    std::string id =
        body->is_object() ? comfy::text_of(body->get_object(), "prompt_id") : std::string();
    Result<> done;
    if (id.empty()) {
        done = co_await cancel_all(context, call.caller.tenant, {jobs::State::running});
    } else {
        auto one = co_await cancel_by_id(context, call.caller.tenant, std::move(id), is_running);
        if (!one) {
            done = fail(std::move(one.error()));
        }
    }
    co_await answer_done(call, std::move(done));
}

Task<> post_free(Call& call, Context& context) {
    auto body = co_await read_json(call, context.services);
    if (!body) {
        co_await send(call, encode_native_error(body.error()));
        co_return;
    }
    if (!body->is_object()) {
        co_await send(call, trouble());
        co_return;
    }
    const bool models = is_true(body->get_object(), "unload_models");
    const bool results = is_true(body->get_object(), "free_memory");
    if (models || results) {
        co_await context.services.jobs.free_idle_workers(models, results);
    }
    co_await send(call, empty_reply(200));
}

Task<> cancel_job(Call& call, Context& context) {
    auto done = co_await cancel_by_id(
        context, call.caller.tenant, call.path_parameters.at(0), is_unfinished
    );
    if (!done) {
        co_await send(call, encode_native_error(done.error()));
        co_return;
    }
    co_await send(call, json_reply(200, json::object{{"cancelled", *done}}));
}

Task<> cancel_jobs(Call& call, Context& context) {
    auto body = co_await read_json(call, context.services);
    if (!body) {
        co_await send(call, encode_native_error(body.error()));
        co_return;
    }
    const json::array* given =
        body->is_object() ? comfy::array_of(body->get_object(), "job_ids") : nullptr;
    if (given == nullptr || given->size() > kIdsMax) {
        co_await send(
            call, json_reply(400, json::object{{"error", "job_ids must be a list of job ids"}})
        );
        co_return;
    }
    json::array invalid;
    for (const json::value& id : *given) {
        if (!id.is_string() || !Uuid::parse(std::string_view(id.get_string()))) {
            invalid.push_back(id);
        }
    }
    if (!invalid.empty()) {
        json::object refusal{{"error", "job_ids must be valid UUIDs"}};
        refusal["invalid_ids"] = std::move(invalid);
        co_await send(call, json_reply(400, refusal));
        co_return;
    }
    bool any = false;
    for (const json::value& id : *given) {
        auto done = co_await cancel_by_id(
            context, call.caller.tenant, std::string(id.get_string()), is_unfinished
        );
        any = any || (done && *done);
    }
    co_await send(call, json_reply(200, json::object{{"cancelled", any}}));
}

}  // namespace comfyd::api::native
