#include "api/dialects/tasks/tasks.hpp"

#include <algorithm>
#include <utility>

#include "api/answer_shelf.hpp"
#include "api/dialects/job_stream.hpp"
#include "api/dialects/kept_outputs.hpp"
#include "api/visible_workers.hpp"

namespace comfyd::api {
namespace tasks {
namespace {

constexpr std::string_view kStatusNames = "pending, running, completed, failed, cancelled";

net::Response error_response(const Error& error) {
    net::Response response = json_response(execution::http_status(error.code), encode_error(error));
    execution::add_retry_after(error, response);
    return response;
}

// A task that names a stored workflow instead of bringing one.
Task<Result<>> fill_named(
    const Call& call,
    const Services& services,
    named::Choice choice,
    json::object body,
    Submission& submission
) {
    json::object values;
    if (const json::value* payload = json::find(body, "payload")) {
        values = payload->as_object();
    }
    submission.request = std::move(body);
    auto filled = co_await named::fill(
        services, call.caller.tenant, std::move(choice), std::move(values), submission
    );
    if (!filled && filled.error().code == Code::not_found) {
        filled.error().message += ": store it first, or send a workflow as 'payload'";
    }
    co_return filled;
}

Task<> submit_task(Call& call, const Services& services) {
    auto body = co_await read_json_body(call, services);
    if (!body) {
        co_await send(call, error_response(body.error()));
        co_return;
    }
    const auto choice = named_workflow(*body);
    auto decoded = choice ? decode_options(*body) : decode_request(std::move(*body));
    if (!decoded) {
        co_await send(call, error_response(decoded.error()));
        co_return;
    }
    auto common = decode_common(call, services, decoded->common, decoded->submission.spec);
    if (!common) {
        co_await send(call, error_response(common.error()));
        co_return;
    }
    if (choice) {
        auto filled =
            co_await fill_named(call, services, *choice, std::move(*body), decoded->submission);
        if (!filled) {
            co_await send(call, error_response(filled.error()));
            co_return;
        }
    }
    auto submitted = co_await submit(call, services, std::move(decoded->submission));
    if (!submitted) {
        co_await send(call, error_response(submitted.error()));
        co_return;
    }
    const jobs::Job& job = submitted->view.job;
    net::Response response =
        json_response(201, encode_task(job, execution::links_of(call, services)));
    response.headers.set("Location", "/api/v1/tasks/" + job.id.to_string());
    if (submitted->replayed) {
        response.headers.set("Idempotency-Replayed", "true");
    }
    co_await send(call, std::move(response));
}

Task<> get_task(Call& call, const Services& services) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await send(call, error_response(id.error()));
        co_return;
    }
    KeptAnswer kept(call, services, *id, "tasks");
    const auto earlier = co_await kept.find();
    if (earlier) {
        co_await send(call, encoded_response(200, earlier->body));
        co_return;
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    kept.made_of(view->job);
    auto spec = co_await services.jobs.spec(call.caller.tenant, *id);
    if (!spec) {
        co_await send(call, error_response(spec.error()));
        co_return;
    }
    auto payload = json::parse(spec->workflow);
    if (!payload) {
        co_await send(
            call,
            error_response(Error(Code::internal, "the stored payload of this task is damaged"))
        );
        co_return;
    }
    json::object body = encode_task(view->job, execution::links_of(call, services));
    body["payload"] = std::move(*payload);
    auto completed =
        co_await complete_answer(services, std::move(view->job), body, execution::outputs_in(body));
    if (!completed) {
        co_await send(call, error_response(completed.error()));
        co_return;
    }
    net::Response response = json_response(200, body);
    kept.keep(response.body);
    co_await send(call, std::move(response));
}

using Change = Task<Result<jobs::View>> (jobs::Service::*)(std::string, JobId);

Task<> change_task(Call& call, const Services& services, Change change) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await send(call, error_response(id.error()));
        co_return;
    }
    auto view = co_await (services.jobs.*change)(call.caller.tenant, *id);
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    const json::object body = encode_task(view->job, execution::links_of(call, services));
    co_await send(call, json_response(200, body));
}

Task<> cancel_task(Call& call, const Services& services) {
    return change_task(call, services, &jobs::Service::cancel);
}

Task<> delete_task(Call& call, const Services& services) {
    return change_task(call, services, &jobs::Service::remove);
}

Task<> list_tasks(Call& call, const Services& services) {
    auto query = execution::decode_list_query(call, states_of, kStatusNames);
    if (!query) {
        co_await send(call, error_response(query.error()));
        co_return;
    }
    auto page = co_await services.jobs.list(std::move(*query));
    if (!page) {
        co_await send(call, error_response(page.error()));
        co_return;
    }
    const auto links = execution::links_of(call, services);
    json::array listed;
    for (const jobs::Job& job : page->jobs) {
        listed.emplace_back(encode_task(job, links));
    }
    json::object body;
    body["count"] = listed.size();
    body["tasks"] = std::move(listed);
    body["next_cursor"] =
        page->next_cursor ? json::value(page->next_cursor->to_string()) : json::value(nullptr);
    co_await send(call, json_response(200, body));
}

Task<> stream_task(Call& call, const Services& services) {
    StreamShape shape;
    shape.name = "tasks";
    shape.state = [](const execution::Shown& shown, const execution::Links& links) {
        return encode_task(shown.view.job, links);
    };
    shape.event = encode_message;
    shape.refuse = error_response;
    co_await stream_job(call, services, std::move(shape));
}

// Jobs of other tenants run on the same workers; their ids are the operators' business alone.
Task<bool> may_see_job(const Call& call, const Services& services, std::optional<JobId> job) {
    if (!job || call.caller.may(auth::Scope::admin)) {
        co_return job.has_value();
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *job);
    co_return view.has_value();
}

Task<> list_workers(Call& call, const Services& services) {
    const auto workers = co_await visible_workers(call, services);
    json::array listed;
    for (const jobs::WorkerInfo& worker : workers) {
        const bool shown = co_await may_see_job(call, services, worker.current_job);
        listed.emplace_back(encode_worker(worker, shown));
    }
    json::object body;
    body["count"] = listed.size();
    body["workers"] = std::move(listed);
    co_await send(call, json_response(200, body));
}

Task<> get_worker(Call& call, const Services& services) {
    const std::string& id = call.path_parameters.at(0);
    const auto workers = co_await visible_workers(call, services);
    const auto found =
        std::find_if(workers.begin(), workers.end(), [&id](const jobs::WorkerInfo& worker) {
            return worker.id == id;
        });
    if (found == workers.end()) {
        co_await send(
            call, error_response(Error(Code::not_found, "there is no worker with this id"))
        );
        co_return;
    }
    const bool shown = co_await may_see_job(call, services, found->current_job);
    co_await send(call, json_response(200, encode_worker(*found, shown)));
}

Task<> worker_metrics(Call& call, const Services& services) {
    const auto workers = co_await visible_workers(call, services);
    co_await send(call, json_response(200, encode_worker_metrics(workers)));
}

Task<> queue_metrics(Call& call, const Services& services) {
    auto counts = co_await services.jobs.counts(call.caller.tenant);
    if (!counts) {
        co_await send(call, error_response(counts.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode_queue_metrics(*counts)));
}

// Without their own words: everybody may ask.
Result<> check_workers(
    const std::vector<jobs::WorkerInfo>& workers,
    std::initializer_list<jobs::WorkerStatus> good,
    std::string_view otherwise
) {
    const bool any = std::any_of(workers.begin(), workers.end(), [good](const auto& worker) {
        return std::find(good.begin(), good.end(), worker.status) != good.end();
    });
    return any ? Result<>() : fail(Code::worker_unavailable, std::string(otherwise));
}

Task<> health(Call& call, const Services& services) {
    const auto queue = co_await services.jobs.queue_counts();
    const auto workers = co_await services.jobs.workers();
    using enum jobs::WorkerStatus;
    const auto up = check_workers(workers, {idle, running, draining}, "no worker is up");
    json::object body{
        {"status", up ? "healthy" : "unhealthy"},
        {"version", COMFYD_VERSION},
        {"comfyui_server", up ? "connected" : "disconnected"},
        {"queue_running", queue.running},
        {"queue_pending", queue.queued + queue.retry_waiting},
        {"timestamp", static_cast<double>(to_unix_ms(services.clock.now())) / 1000.0},
    };
    if (!up) {
        body["error"] = up.error().message;
    }
    co_await send(call, json_response(up ? 200 : 503, body));
}

Task<> ready(Call& call, const Services& services) {
    auto checked = services.ready();
    if (checked) {
        const auto workers = co_await services.jobs.workers();
        using enum jobs::WorkerStatus;
        checked = check_workers(workers, {idle, running}, "no worker takes jobs");
    }
    if (!checked) {
        json::object body = encode_error(checked.error());
        body["status"] = "not_ready";
        co_await send(call, json_response(503, body));
        co_return;
    }
    co_await send(call, json_response(200, json::object{{"status", "ready"}}));
}

}  // namespace
}  // namespace tasks

void add_tasks(Router& router, const Services& services) {
    using namespace tasks;
    using Function = Task<> (*)(Call&, const Services&);
    const auto add = [&](net::Method method,
                         std::string pattern,
                         Function function,
                         json::object operation,
                         Access access = Access::jobs) {
        Route route;
        route.method = method;
        route.pattern = std::move(pattern);
        route.handler = [&services, function](Call& call) { return function(call, services); };
        route.encode_error = error_response;
        route.access = access;
        route.weight = function == cancel_task ? std::optional(0.0) : std::nullopt;
        route.is_stream = function == stream_task;
        route.operation = std::move(operation);
        router.add(std::move(route));
    };
    using net::Method;
    add(Method::post, "/api/v1/tasks", submit_task, operation_submit());
    add(Method::get, "/api/v1/tasks", list_tasks, operation_list());
    add(Method::get, "/api/v1/tasks/{id}", get_task, operation_get());
    add(Method::del, "/api/v1/tasks/{id}", delete_task, operation_delete());
    add(Method::post, "/api/v1/tasks/{id}/cancel", cancel_task, operation_cancel());
    add(Method::get, "/api/v1/tasks/{id}/events", stream_task, operation_events());
    add(Method::get, "/api/v1/workers", list_workers, operation_workers());
    add(Method::get, "/api/v1/workers/metrics", worker_metrics, operation_worker_metrics());
    add(Method::get, "/api/v1/workers/{id}", get_worker, operation_worker());
    add(Method::get, "/api/v1/queue/metrics", queue_metrics, operation_queue_metrics());
    add(Method::get, "/health", health, operation_health(), Access::open);
    add(Method::get, "/ready", ready, operation_ready(), Access::open);
    router.add_schemas(schemas());
}

}  // namespace comfyd::api
