#include "api/dialects/runpod/runpod.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "admission/admit.hpp"
#include "api/dialects/kept_outputs.hpp"
#include "api/job_wait.hpp"
#include "api/sse.hpp"
#include "comfy/members.hpp"

namespace comfyd::api {
namespace runpod {
namespace {

using jobs::State;

constexpr Millis kCancelPatience{2'000};
constexpr int kPage = 1'000;
constexpr int kPagesMax = 10;
constexpr Millis kHealthSpan = std::chrono::hours(24);

net::Response error_response(const Error& error) {
    net::Response response = json_response(execution::http_status(error.code), encode_error(error));
    execution::add_retry_after(error, response);
    return response;
}

const std::string& endpoint_of(const Call& call) {
    return call.path_parameters.at(0);
}

// decode_common() knows the webhook by another name.
Error in_own_words(Error error) {
    constexpr std::string_view kTheirs = "webhook_url";
    if (const auto at = error.message.find(kTheirs); at != std::string::npos) {
        error.message.replace(at, kTheirs.size(), "webhook");
        error.details["field"] = "webhook";
    }
    return error;
}

Task<Result<jobs::Submitted>> accept(Call& call, const Services& services, std::uint64_t max) {
    if (auto checked = check_endpoint(endpoint_of(call)); !checked) {
        co_return fail(std::move(checked.error()));
    }
    auto body = co_await read_json_body(call, services, max);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto decoded = decode_request(std::move(*body));
    if (!decoded) {
        co_return fail(std::move(decoded.error()));
    }
    jobs::Spec& spec = decoded->submission.spec;
    auto common = decode_common(call, services, decoded->common, spec);
    if (!common) {
        co_return fail(in_own_words(std::move(common.error())));
    }
    spec.tenant = call.caller.tenant;
    if (decoded->bucket) {
        if (auto kept = keep_bucket(services, *decoded->bucket, spec); !kept) {
            co_return fail(std::move(kept.error()));
        }
    }
    if (!decoded->submission.request.empty()) {
        auto earlier = co_await admission::find_replay(services, decoded->submission);
        if (!earlier || *earlier) {
            co_return earlier ? Result<jobs::Submitted>(std::move(**earlier))
                              : fail(std::move(earlier.error()));
        }
    }
    auto opened = co_await open_workflow_of(call, services, *decoded);
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    spec.workflow_id = endpoint_of(call);
    if (!decoded->images.empty()) {
        auto placed = co_await place_images(call, services, *decoded);
        if (!placed) {
            co_return fail(std::move(placed.error()));
        }
    }
    auto submitted = co_await submit(call, services, std::move(decoded->submission));
    co_return submitted;
}

// A job of this dialect belongs to its endpoint; those of others can be read by any.
bool is_under(const std::string& endpoint, const jobs::Job& job) {
    return job.dialect != kDialect || job.workflow_id == endpoint;
}

Task<Result<jobs::View>> find_job(const Call& call, const Services& services) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(1));
    if (!id) {
        co_return fail(id.error());
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (view && !is_under(endpoint_of(call), view->job)) {
        co_return fail(Code::not_found, "no job of this endpoint has the id " + id->to_string());
    }
    co_return view;
}

// The answer of status and runsync.
Task<> answer_status(Call& call, const Services& services, jobs::View view, std::uint64_t max) {
    std::optional<json::object> output;
    if (has_output(view.job)) {
        auto made =
            co_await make_output(services, view.job, execution::links_of(call, services), max);
        output = std::move(made);
    }
    json::object body = encode_status(view, std::move(output));
    auto completed = co_await complete_answer(services, std::move(view.job), body, nullptr);
    if (!completed) {
        co_await send(call, error_response(completed.error()));
        co_return;
    }
    co_await send(call, json_response(200, body));
}

Task<> run(Call& call, const Services& services) {
    auto submitted = co_await accept(call, services, kRunBytesMax);
    if (!submitted) {
        co_await send(call, error_response(submitted.error()));
        co_return;
    }
    const jobs::Job& job = submitted->view.job;
    const json::object body{{"id", job.id.to_string()}, {"status", status_of(job)}};
    net::Response response = json_response(200, body);
    if (submitted->replayed) {
        response.headers.set("Idempotency-Replayed", "true");
    }
    co_await send(call, std::move(response));
}

Task<> run_sync(Call& call, const Services& services) {
    const auto wait = decode_wait(call.query_value("wait"));
    if (!wait) {
        co_await send(call, error_response(wait.error()));
        co_return;
    }
    const auto slot = StreamSlot::open(services);
    if (!slot) {
        co_await send(call, error_response(slot.error()));
        co_return;
    }
    auto submitted = co_await accept(call, services, kRunSyncBytesMax);
    if (!submitted) {
        co_await send(call, error_response(submitted.error()));
        co_return;
    }
    auto view = co_await wait_for_end(
        services, call.caller.tenant, submitted->view.job.id, Deadline::in(*wait)
    );
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    co_await answer_status(call, services, std::move(*view), kRunSyncBytesMax);
}

Task<> status(Call& call, const Services& services) {
    auto view = co_await find_job(call, services);
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    co_await answer_status(call, services, std::move(*view), kRunBytesMax);
}

Task<> stream(Call& call, const Services& services, std::shared_ptr<StreamCursors> cursors) {
    auto view = co_await find_job(call, services);
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    const jobs::Job& job = view->job;
    json::array chunks;
    const auto add = [&chunks](json::object output) {
        chunks.push_back({{"metrics", json::object()}, {"output", std::move(output)}});
    };
    if (view->progress) {
        json::object progress = view->progress->to_json();
        if (cursors->give_progress(job.id, json::serialize(progress))) {
            progress["type"] = "progress";
            add(std::move(progress));
        }
    }
    if (has_output(job) && cursors->give_result(job.id, job.attempt)) {
        const bool as_links = comfy::text_of(job.dialect_data, "return") == "url";
        for (const jobs::Output& output : job.outputs) {
            if (output.folder == "temp") {
                continue;
            }
            auto file = co_await make_file(
                services,
                job.tenant,
                output,
                execution::links_of(call, services),
                as_links ? 0 : kChunkBytesMax
            );
            add(std::move(file));
        }
    }
    json::object body = encode_status(*view, std::nullopt);
    body["stream"] = std::move(chunks);
    co_await send(call, json_response(200, body));
}

Task<> cancel(Call& call, const Services& services) {
    auto found = co_await find_job(call, services);
    if (!found) {
        co_await send(call, error_response(found.error()));
        co_return;
    }
    const JobId id = found->job.id;
    auto view = co_await services.jobs.cancel(call.caller.tenant, id);
    if (view && !jobs::is_terminal(view->job.state)) {
        // A worker needs a moment to let go; clients expect to read CANCELLED.
        view =
            co_await wait_for_end(services, call.caller.tenant, id, Deadline::in(kCancelPatience));
    }
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode_status(*view, std::nullopt)));
}

Task<> retry(Call& call, const Services& services) {
    auto found = co_await find_job(call, services);
    if (!found) {
        co_await send(call, error_response(found.error()));
        co_return;
    }
    const std::string_view now = status_of(found->job);
    if (now != "FAILED" && now != "TIMED_OUT") {
        const Error error(
            Code::conflict,
            "the job is " + std::string(now) +
                "; only one that is FAILED or TIMED_OUT can be tried again"
        );
        co_await send(call, error_response(error));
        co_return;
    }
    auto view = co_await services.jobs.retry(call.caller.tenant, found->job.id);
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    const json::object body{{"id", view->job.id.to_string()}, {"status", "IN_QUEUE"}};
    co_await send(call, json_response(200, body));
}

jobs::ListQuery query_of(const Call& call, std::vector<State> states) {
    jobs::ListQuery query;
    query.tenant = call.caller.tenant;
    query.dialect = kDialect;
    query.workflow_id = endpoint_of(call);
    query.states = std::move(states);
    query.limit = kPage;
    return query;
}

// Newest first: they are the last ones that a worker would take meanwhile.
Task<Result<std::uint64_t>> purge_all(const Call& call, const Services& services) {
    std::uint64_t removed = 0;
    jobs::ListQuery query = query_of(call, {State::queued, State::retry_waiting});
    for (;;) {
        auto page = co_await services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (const jobs::Job& job : page->jobs) {
            auto cancelled = co_await services.jobs.cancel_waiting(call.caller.tenant, job.id);
            if (cancelled) {
                ++removed;
            } else if (cancelled.error().code != Code::conflict &&
                       cancelled.error().code != Code::not_found) {
                co_return fail(std::move(cancelled.error()));
            }
        }
        if (!page->next_cursor) {
            co_return removed;
        }
        query.cursor = page->next_cursor;
    }
}

Task<> purge(Call& call, const Services& services) {
    if (auto checked = check_endpoint(endpoint_of(call)); !checked) {
        co_await send(call, error_response(checked.error()));
        co_return;
    }
    auto removed = co_await purge_all(call, services);
    if (!removed) {
        co_await send(call, error_response(removed.error()));
        co_return;
    }
    const json::object body{{"removed", *removed}, {"status", "completed"}};
    co_await send(call, json_response(200, body));
}

void count_job(EndpointCounts& counts, const jobs::Job& job) {
    const std::string_view status = status_of(job);
    counts.completed += status == "COMPLETED" ? 1 : 0;
    counts.failed += status == "FAILED" || status == "TIMED_OUT" ? 1 : 0;
    counts.in_progress += status == "IN_PROGRESS" ? 1 : 0;
    counts.in_queue += status == "IN_QUEUE" ? 1 : 0;
    counts.retried += job.attempt > 1 ? 1 : 0;
}

Task<Result<>> count_jobs(const Services& services, jobs::ListQuery query, EndpointCounts& into) {
    for (int pages = 0; pages < kPagesMax; ++pages) {
        auto page = co_await services.jobs.list(query);
        if (!page) {
            co_return fail(std::move(page.error()));
        }
        for (const jobs::Job& job : page->jobs) {
            count_job(into, job);
        }
        if (!page->next_cursor) {
            break;
        }
        query.cursor = page->next_cursor;
    }
    co_return Result<>();
}

Task<> health(Call& call, const Services& services) {
    if (auto checked = check_endpoint(endpoint_of(call)); !checked) {
        co_await send(call, error_response(checked.error()));
        co_return;
    }
    EndpointCounts counts;
    auto live = co_await count_jobs(
        services, query_of(call, {State::queued, State::retry_waiting, State::running}), counts
    );
    if (!live) {
        co_await send(call, error_response(live.error()));
        co_return;
    }
    jobs::ListQuery ended = query_of(call, {State::completed, State::failed, State::expired});
    ended.created_after = services.clock.now() - kHealthSpan;
    auto past = co_await count_jobs(services, std::move(ended), counts);
    if (!past) {
        co_await send(call, error_response(past.error()));
        co_return;
    }
    const auto workers = co_await services.jobs.workers();
    co_await send(call, json_response(200, encode_health(counts, workers)));
}

}  // namespace
}  // namespace runpod

void add_runpod(Router& router, const Services& services) {
    using namespace runpod;
    using Function = Task<> (*)(Call&, const Services&);
    const auto add_route = [&](net::Method method,
                               const char* pattern,
                               Handler handler,
                               json::object operation,
                               std::optional<double> weight = {}) {
        Route route;
        route.method = method;
        route.pattern = std::string("/runpod/v2/{endpoint}/") + pattern;
        route.handler = std::move(handler);
        route.encode_error = error_response;
        route.access = Access::jobs;
        route.weight = weight;
        route.operation = std::move(operation);
        router.add(std::move(route));
    };
    const auto add =
        [&](net::Method method, const char* pattern, Function function, json::object doc) {
            const bool is_free = function == status || function == cancel || function == purge;
            add_route(
                method,
                pattern,
                [&services, function](Call& call) { return function(call, services); },
                std::move(doc),
                is_free ? std::optional(0.0) : std::nullopt
            );
        };
    using net::Method;
    add(Method::post, "run", run, operation_run());
    add(Method::post, "runsync", run_sync, operation_runsync());
    add(Method::get, "status/{id}", status, operation_status());
    add(Method::post, "cancel/{id}", cancel, operation_cancel());
    add(Method::post, "retry/{id}", retry, operation_retry());
    add(Method::post, "purge-queue", purge, operation_purge());
    add(Method::get, "health", health, operation_health());
    add_route(
        Method::get,
        "stream/{id}",
        [&services, cursors = std::make_shared<StreamCursors>()](Call& call) {
            return stream(call, services, cursors);
        },
        operation_stream()
    );
    // Clients of RunPod may also POST to ask for a status.
    add(Method::post, "status/{id}", status, {});
    router.add_schemas(schemas());
}

}  // namespace comfyd::api
