// Comfy API v2, the contract that ComfyUI's own client libraries speak: jobs.
#include <algorithm>
#include <charconv>
#include <utility>

#include "api/answer_shelf.hpp"
#include "api/dialects/comfy_v2/comfy_v2_parts.hpp"
#include "api/dialects/comfy_v2/comfy_v2_shapes.hpp"
#include "api/dialects/dialects.hpp"
#include "api/dialects/kept_outputs.hpp"
#include "api/dialects/output_media.hpp"
#include "api/sse.hpp"
#include "api/submission.hpp"
#include "workflow/files/file_inputs.hpp"

namespace comfyd::api {
namespace v2 {
namespace {

constexpr int kListMax = 1000;
constexpr std::string_view kDialect = "comfy-v2";
constexpr std::size_t kWorkflowIdBytesMax = 255;

// Credentials for API nodes travel with the job but are never stored.
Result<> decode_extra_data(const json::object& body, jobs::Spec& spec) {
    const auto extra = json::find_object(body, "extra_data");
    if (!extra) {
        return fail(extra.error());
    }
    if (*extra == nullptr) {
        return {};
    }
    for (const auto& member : **extra) {
        const std::string_view key = member.key();
        if (key == "api_key_comfy_org" || key == "auth_token_comfy_org") {
            if (!member.value().is_string()) {
                return fail(
                    Code::invalid_argument,
                    "'extra_data." + std::string(key) + "' must be a string",
                    {{"field", "extra_data"}}
                );
            }
        } else if (key != "extra_pnginfo") {
            return fail(
                Code::invalid_argument,
                "'extra_data' may hold api_key_comfy_org, auth_token_comfy_org and extra_pnginfo, "
                "but not '" +
                    std::string(key.substr(0, 64)) + "'",
                {{"field", "extra_data"}}
            );
        }
        spec.extra_data[member.key()] = member.value();
    }
    return {};
}

Result<> decode_workflow_id(const json::object& body, jobs::Spec& spec) {
    auto id = json::find_string(body, "workflow_id");
    if (!id) {
        return fail(std::move(id.error()));
    }
    spec.workflow_id = std::move(*id).value_or("");
    if (spec.workflow_id.size() > kWorkflowIdBytesMax) {
        return fail(
            Code::invalid_argument,
            "'workflow_id' has " + std::to_string(spec.workflow_id.size()) +
                " bytes, but may have at most " + std::to_string(kWorkflowIdBytesMax),
            {{"field", "workflow_id"}}
        );
    }
    return {};
}

Result<Submission> decode_submission(
    const Call& call, const Services& services, json::object& body
) {
    json::value* workflow = body.if_contains("workflow");
    const bool is_elsewhere = workflow != nullptr && workflow->is_string() &&
                              workflow::is_file_source(std::string_view(workflow->get_string()));
    if (workflow == nullptr || (!workflow->is_object() && !is_elsewhere)) {
        return fail(
            Code::invalid_workflow,
            "the body needs 'workflow': a workflow in API format, an object of nodes by id"
        );
    }
    const auto inputs = json::find_object(body, "inputs");
    if (!inputs) {
        return fail(inputs.error());
    }
    jobs::Spec spec;
    spec.dialect = kDialect;
    if (auto done = decode_common(call, services, body, spec); !done) {
        return fail(std::move(done.error()));
    }
    if (auto done = decode_extra_data(body, spec); !done) {
        return fail(std::move(done.error()));
    }
    if (auto done = decode_workflow_id(body, spec); !done) {
        return fail(std::move(done.error()));
    }
    // Made in one piece: assigning the workflow to a member would copy it out of its arena.
    return Submission{
        .spec = std::move(spec),
        .workflow = is_elsewhere ? json::object() : std::move(workflow->get_object()),
        .parameters = *inputs == nullptr ? json::object() : **inputs,
        .converts_editor_format = false,  // the contract: 422 workflow_format_ui
        .workflow_source = is_elsewhere ? std::string(workflow->get_string()) : std::string(),
        .workflow_field = "workflow",
    };
}

Task<> post_job(Call& call, const Services& services) {
    auto body = co_await read_json_body(call, services);
    if (!body) {
        co_await refuse(call, std::move(body.error()));
        co_return;
    }
    auto submission = decode_submission(call, services, *body);
    if (!submission) {
        co_await refuse(call, std::move(submission.error()));
        co_return;
    }
    auto submitted = co_await submit(call, services, std::move(*submission));
    if (!submitted) {
        co_await refuse(call, std::move(submitted.error()));
        co_return;
    }
    const JobId id = submitted->view.job.id;
    if (submitted->replayed) {  // a key is good for one request here, equal or not
        Error error(
            Code::idempotency_key_reuse,
            "this Idempotency-Key was used before, for job " + id.to_string() +
                "; read that job, or send a new key for a new one",
            {{"job_id", id.to_string()}}
        );
        co_await refuse(call, std::move(error));
        co_return;
    }
    net::Response response =
        json_response(201, encode_job(submitted->view, Scope{call.request, services}));
    response.headers.set("Location", job_path(id, services.options));
    auto sent = co_await call.exchange.send(std::move(response));
    static_cast<void>(sent);  // the job is safe, whether or not the client hears of it
}

// With all that is to be looked up for it.
Task<Result<json::object>> encode_whole(
    const Call& call, const Services& services, jobs::View view
) {
    json::object body = encode_job(view, Scope{call.request, services});
    auto attempts = co_await services.jobs.attempts(view.job);
    if (!attempts) {
        co_return fail(std::move(attempts.error()));
    }
    json::array tried;
    for (const jobs::PastAttempt& attempt : *attempts) {
        tried.emplace_back(attempt.to_json());
    }
    body["attempts"] = std::move(tried);
    json::value* outputs = body.if_contains("outputs");
    auto completed = co_await complete_answer(services, std::move(view.job), body, outputs);
    if (!completed) {
        co_return fail(std::move(completed.error()));
    }
    co_return body;
}

Task<> get_job(Call& call, const Services& services) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await refuse(call, id.error());
        co_return;
    }
    KeptAnswer kept(call, services, *id, kDialect);
    const auto earlier = co_await kept.find();
    if (earlier) {
        co_await send(call, encoded_response(200, earlier->body));
        co_return;
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (!view) {
        co_await refuse(call, std::move(view.error()));
        co_return;
    }
    kept.made_of(view->job);
    auto body = co_await encode_whole(call, services, std::move(*view));
    if (!body) {
        co_await refuse(call, std::move(body.error()));
        co_return;
    }
    net::Response response = json_response(200, *body);
    kept.keep(response.body);
    co_await send(call, std::move(response));
}

using Action = Task<Result<jobs::View>> (jobs::Service::*)(std::string tenant, JobId id);

// Does it to the job that the path names.
Task<Result<jobs::View>> act(const Call& call, const Services& services, Action action) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_return fail(id.error());
    }
    auto view = co_await (services.jobs.*action)(call.caller.tenant, *id);
    co_return view;
}

// And answers with it.
Task<> change_job(Call& call, const Services& services, Action action) {
    auto view = co_await act(call, services, action);
    if (!view) {
        co_await refuse(call, std::move(view.error()));
        co_return;
    }
    auto body = co_await encode_whole(call, services, std::move(*view));
    if (!body) {
        co_await refuse(call, std::move(body.error()));
        co_return;
    }
    co_await answer(call, 200, std::move(*body));
}

tl::unexpected<Error> bad_query(std::string_view name, std::string message) {
    return fail(
        Code::invalid_argument,
        std::move(message),
        {{"field", boost::json::string_view(name.data(), name.size())}}
    );
}

Result<std::optional<Time>> query_time(const Call& call, std::string_view name) {
    const std::string_view text = call.query_value(name);
    if (text.empty()) {
        return std::nullopt;
    }
    const auto time = parse_rfc3339(text);
    if (!time) {
        return bad_query(
            name,
            "'" + std::string(name) + "' must be a time such as 2030-01-31T12:00:00Z (RFC 3339)"
        );
    }
    return *time;
}

Result<> query_statuses(const Call& call, jobs::ListQuery& query) {
    std::string_view rest = call.query_value("status");
    while (!rest.empty()) {
        const auto comma = std::min(rest.find(','), rest.size());
        const std::string_view status = rest.substr(0, comma);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        const auto states = states_of(status);
        if (states.empty()) {
            return bad_query(
                "status",
                "'status' must be of queued, running, succeeded, canceling, canceled, failed and "
                "expired, not '" +
                    std::string(status.substr(0, 64)) + "'"
            );
        }
        query.states.insert(query.states.end(), states.begin(), states.end());
    }
    return {};
}

Result<jobs::ListQuery> decode_list(const Call& call) {
    jobs::ListQuery query;
    query.tenant = call.caller.tenant;
    query.workflow_id = std::string(call.query_value("workflow_id"));
    if (auto done = query_statuses(call, query); !done) {
        return fail(std::move(done.error()));
    }
    if (const std::string_view text = call.query_value("limit"); !text.empty()) {
        int limit = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), limit);
        if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || limit < 1 ||
            limit > kListMax) {
            return bad_query(
                "limit",
                "'limit' is '" + std::string(text.substr(0, 64)) + "', but must be from 1 to " +
                    std::to_string(kListMax)
            );
        }
        query.limit = limit;
    }
    if (const std::string_view text = call.query_value("cursor"); !text.empty()) {
        query.cursor = JobId::parse(text);
        if (!query.cursor) {
            return bad_query("cursor", "'cursor' must be the next_cursor of an earlier page");
        }
    }
    const auto after = query_time(call, "created_after");
    if (!after) {
        return fail(after.error());
    }
    const auto before = query_time(call, "created_before");
    if (!before) {
        return fail(before.error());
    }
    query.created_after = *after;
    query.created_before = *before;
    return query;
}

Task<> list_jobs(Call& call, const Services& services) {
    auto query = decode_list(call);
    if (!query) {
        co_await refuse(call, std::move(query.error()));
        co_return;
    }
    auto page = co_await services.jobs.list(std::move(*query));
    if (!page) {
        co_await refuse(call, std::move(page.error()));
        co_return;
    }
    // The ledger knows no "canceling": such a job is one that runs.
    const bool only_canceling = call.query_value("status") == "canceling";
    json::array listed;
    for (jobs::Job& job : page->jobs) {
        if (!only_canceling || job.cancel_requested) {
            jobs::View view;
            view.job = std::move(job);
            listed.push_back(encode_job(view, Scope{call.request, services}));
        }
    }
    json::value cursor = nullptr;
    if (page->next_cursor) {
        cursor = page->next_cursor->to_string();
    }
    co_await answer(
        call, 200, json::object{{"jobs", std::move(listed)}, {"next_cursor", std::move(cursor)}}
    );
}

Task<Result<json::value>> find_workflow(const Call& call, const Services& services) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_return fail(id.error());
    }
    auto spec = co_await services.jobs.spec(call.caller.tenant, *id);
    if (!spec) {
        co_return fail(std::move(spec.error()));
    }
    co_return json::parse(spec->workflow);
}

Task<> show_workflow(Call& call, const Services& services) {
    auto workflow = co_await find_workflow(call, services);
    if (!workflow) {
        co_await refuse(call, std::move(workflow.error()));
        co_return;
    }
    co_await answer(call, 200, json::object{{"workflow", std::move(*workflow)}, {"format", "api"}});
}

// Previews are large, so only those get them who say that they want events and nothing else, as
// client libraries and browsers do, or who ask.
bool wants_previews(const Call& call) {
    const std::string_view asked = call.query_value("previews");
    if (!asked.empty()) {
        return asked == "1" || asked == "true";
    }
    return call.request.headers.get("Accept").find("text/event-stream") != std::string_view::npos;
}

struct Opening {
    jobs::View view;
    std::optional<std::uint64_t> since;
};

Task<Result<Opening>> open_stream(const Call& call, const Services& services) {
    const auto since = last_event_id(call);
    if (!since) {
        co_return fail(since.error());
    }
    auto view = co_await act(call, services, &jobs::Service::get);
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    co_return Opening{std::move(*view), *since};
}

Task<> stream_job_events(Call& call, const Services& services) {
    auto opening = co_await open_stream(call, services);
    if (!opening) {
        co_await refuse(call, std::move(opening.error()));
        co_return;
    }
    const jobs::Job& job = opening->view.job;
    const bool ended = jobs::is_terminal(job.state);
    if (ended && opening->since && *opening->since >= job.sequence) {
        net::Response nothing_more;
        nothing_more.status = 204;  // tells a browser not to connect again
        auto sent = co_await call.exchange.send(std::move(nothing_more));
        static_cast<void>(sent);
        co_return;
    }
    auto slot = StreamSlot::open(services);
    if (!slot) {
        co_await refuse(call, std::move(slot.error()));
        co_return;
    }
    const Scope scope{call.request, services};
    EventStream stream;
    stream.opened_at = job.sequence;
    stream.encode = [scope,
                     form =
                         std::string(kDialect) + '\n' +
                         base_url(call.request, services.options)](const events::EventPtr& event) {
        return scope.services.frames->get(event, form, [&] { return event_frame(*event, scope); });
    };
    if (!opening->since) {
        stream.initial = snapshot_frames(opening->view, scope);
    }
    if (opening->since || !ended) {
        events::WatchOptions options;
        options.since = opening->since.value_or(job.sequence);
        options.previews = wants_previews(call);
        auto subscription = co_await services.jobs.watch(call.caller.tenant, job.id, options);
        if (!subscription) {
            co_await refuse(call, std::move(subscription.error()));
            co_return;
        }
        stream.subscription = std::move(*subscription);
    }
    co_await stream_events(call, services, std::move(stream));
}

Task<> show_health(Call& call, const Services& services) {
    const auto ready = services.ready();
    if (!ready) {
        co_await answer(
            call,
            503,
            json::object{
                {"status", "unavailable"},
                {"reason", ready.error().message},
                {"version", COMFYD_VERSION},
            }
        );
        co_return;
    }
    co_await answer(call, 200, json::object{{"status", "ok"}, {"version", COMFYD_VERSION}});
}

}  // namespace

Task<> refuse(Call& call, Error error) {
    auto sent = co_await call.exchange.send(v2::encode_error(error));
    static_cast<void>(sent);  // a client that is gone needs no answer
}

Task<> answer(Call& call, int status, json::object body) {
    auto sent = co_await call.exchange.send(json_response(status, std::move(body)));
    static_cast<void>(sent);
}

}  // namespace v2

void add_comfy_v2(Router& router, const Services& services) {
    using net::Method;
    const auto add = [&router](
                         Method method,
                         const char* pattern,
                         const char* operation_id,
                         Handler handler,
                         Access access = Access::jobs
                     ) {
        router.add(Route{
            method,
            pattern,
            std::move(handler),
            v2::encode_error,
            access,
            v2::operation(operation_id),
        });
    };
    const auto change = [&services](v2::Action action) {
        return [&services, action](Call& call) { return v2::change_job(call, services, action); };
    };
    add(Method::post, "/api/v2/jobs", "postJobs", [&services](Call& call) {
        return v2::post_job(call, services);
    });
    add(Method::get, "/api/v2/jobs", "listJobs", [&services](Call& call) {
        return v2::list_jobs(call, services);
    });
    add(Method::get, "/api/v2/jobs/{id}", "getJob", [&services](Call& call) {
        return v2::get_job(call, services);
    });
    router.add(Route{
        .method = Method::post,
        .pattern = "/api/v2/jobs/{id}/cancel",
        .handler = change(&jobs::Service::cancel),
        .encode_error = v2::encode_error,
        .access = Access::jobs,
        .operation = v2::operation("cancelJob"),
        .weight = 0,
    });
    add(Method::post, "/api/v2/jobs/{id}/retry", "retryJob", change(&jobs::Service::retry));
    add(Method::get, "/api/v2/jobs/{id}/workflow", "getJobWorkflow", [&services](Call& call) {
        return v2::show_workflow(call, services);
    });
    router.add(Route{
        .method = Method::get,
        .pattern = "/api/v2/jobs/{id}/events",
        .handler = [&services](Call& call) { return v2::stream_job_events(call, services); },
        .encode_error = v2::encode_error,
        .access = Access::jobs,
        .operation = v2::operation("getJobEvents"),
        .is_stream = true,
    });
    add(
        Method::get,
        "/api/v2/health",
        "getApiHealth",
        [&services](Call& call) { return v2::show_health(call, services); },
        Access::open
    );
    v2::add_asset_routes(router, services);
    router.add_schemas(v2::schemas());
    router.add_schemas(media_schemas());
}

}  // namespace comfyd::api
