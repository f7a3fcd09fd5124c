#include "api/dialects/workflows/workflows.hpp"

#include <charconv>
#include <utility>

#include "api/answer_shelf.hpp"
#include "api/dialects/job_stream.hpp"
#include "api/dialects/kept_outputs.hpp"
#include "api/dialects/named/named.hpp"
#include "api/dialects/output_media.hpp"
#include "api/dialects/workflow_tools/workflow_tools.hpp"
#include "api/dialects/workflows/workflows_socket.hpp"
#include "api/explanation.hpp"
#include "api/job_wait.hpp"
#include "api/workflow_source.hpp"

namespace comfyd::api {
namespace workflows {
namespace {

constexpr std::string_view kStatusNames = "queued, processing, completed, failed, cancelled";
constexpr std::int64_t kWaitSecondsMax = 300;

Task<> send(Call& call, const Version& version, net::Response response) {
    add_version_headers(response.headers, version, call.request.path);
    auto sent = co_await call.exchange.send(std::move(response));
    static_cast<void>(sent);  // a client that is gone needs no answer
}

Task<> refuse(Call& call, const Services& services, const Version& version, Error error) {
    auto sent = co_await call.exchange.send(
        error_response(error, services.clock.now(), version, call.request.path)
    );
    static_cast<void>(sent);
}

struct Encoded {
    json::object body;
    bool has_ended = false;
};

// The execution, with all that is to be looked up for it.
Task<Result<execution::Shown>> look_up(const Services& services, Result<jobs::View> view) {
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    auto shown = co_await execution::complete_view(services, std::move(*view));
    co_return shown;
}

// `kept`: hears of what it is made; null: nobody does.
Task<Result<Encoded>> encode(
    const Call& call,
    const Services& services,
    Result<execution::Shown> shown,
    KeptAnswer* kept = nullptr
) {
    if (!shown) {
        co_return fail(std::move(shown.error()));
    }
    Encoded encoded{execution::encode_execution(*shown, execution::links_of(call, services))};
    encoded.has_ended = jobs::is_terminal(shown->view.job.state);
    if (kept != nullptr) {
        kept->made_of(shown->view.job, shown->webhook_delivered);
    }
    auto completed = co_await complete_answer(
        services, std::move(shown->view.job), encoded.body, execution::outputs_in(encoded.body)
    );
    if (!completed) {
        co_return fail(std::move(completed.error()));
    }
    co_return encoded;
}

// Answers with the execution, or says why there is none.
Task<> answer(
    Call& call,
    const Services& services,
    const Version& version,
    int status,
    Result<jobs::View> view
) {
    auto shown = co_await look_up(services, std::move(view));
    auto encoded = co_await encode(call, services, std::move(shown));
    if (!encoded) {
        co_await refuse(call, services, version, std::move(encoded.error()));
        co_return;
    }
    net::Response response = json_response(status, encoded->body);
    co_await send(call, version, std::move(response));
}

Task<> execute(Call& call, const Services& services, const Version& version) {
    auto body = co_await read_workflow_body(call, services);
    if (!body) {
        co_await refuse(call, services, version, std::move(body.error()));
        co_return;
    }
    auto decoded = decode_request(std::move(*body), version);
    if (!decoded) {
        co_await refuse(call, services, version, std::move(decoded.error()));
        co_return;
    }
    auto common = decode_common(call, services, decoded->common, decoded->submission.spec);
    if (!common) {
        co_await refuse(call, services, version, std::move(common.error()));
        co_return;
    }
    co_await submit_and_answer(call, services, version, std::move(decoded->submission));
}

using Action = Task<Result<jobs::View>> (jobs::Service::*)(std::string tenant, JobId id);

// Does it to the execution that the path names, and answers with it.
Task<> act(
    Call& call, const Services& services, const Version& version, Action action, int status
) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await refuse(call, services, version, id.error());
        co_return;
    }
    auto view = co_await (services.jobs.*action)(call.caller.tenant, *id);
    co_await answer(call, services, version, status, std::move(view));
}

Task<> get(Call& call, const Services& services, const Version& version) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await refuse(call, services, version, id.error());
        co_return;
    }
    KeptAnswer kept(call, services, *id, "workflows");
    const auto earlier = co_await kept.find();
    if (earlier) {
        co_await send(call, version, encoded_response(200, earlier->body));
        co_return;
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    auto shown = co_await look_up(services, std::move(view));
    auto encoded = co_await encode(call, services, std::move(shown), &kept);
    if (!encoded) {
        co_await refuse(call, services, version, std::move(encoded.error()));
        co_return;
    }
    net::Response response = json_response(200, encoded->body);
    kept.keep(response.body);
    co_await send(call, version, std::move(response));
}

Task<> cancel(Call& call, const Services& services, const Version& version) {
    return act(call, services, version, &jobs::Service::cancel, 200);
}

Task<> remove_execution(Call& call, const Services& services, const Version& version) {
    return act(call, services, version, &jobs::Service::remove, 200);
}

Task<> retry(Call& call, const Services& services, const Version& version) {
    return act(call, services, version, &jobs::Service::retry, 202);
}

Task<> metrics(Call& call, const Services& services, const Version& version) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await refuse(call, services, version, id.error());
        co_return;
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (!view) {
        co_await refuse(call, services, version, std::move(view.error()));
        co_return;
    }
    co_await send(call, version, json_response(200, execution::encode_metrics(view->job)));
}

Task<> explain(Call& call, const Services& services, const Version& version) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await refuse(call, services, version, id.error());
        co_return;
    }
    auto explained = co_await services.jobs.explain(call.caller.tenant, *id);
    if (!explained) {
        co_await refuse(call, services, version, std::move(explained.error()));
        co_return;
    }
    co_await send(call, version, json_response(200, encode_explanation(*explained)));
}

Task<> list(Call& call, const Services& services, const Version& version) {
    auto query = execution::decode_list_query(call, execution::states_of, kStatusNames);
    if (!query) {
        co_await refuse(call, services, version, std::move(query.error()));
        co_return;
    }
    auto body = co_await execution::list_executions(
        call, services, std::move(*query), execution::encode_execution
    );
    if (!body) {
        co_await refuse(call, services, version, std::move(body.error()));
        co_return;
    }
    co_await send(call, version, json_response(200, *body));
}

Task<> stream(Call& call, const Services& services, const Version& version) {
    StreamShape shape;
    shape.name = "workflows";
    shape.state = execution::encode_execution;
    shape.refuse = [&call, &services, version](const Error& error) {
        return error_response(error, services.clock.now(), version, call.request.path);
    };
    add_version_headers(shape.headers, version, call.request.path);
    co_await stream_job(call, services, std::move(shape));
}

// ?wait=, in seconds. Zero: not to wait.
Result<Millis> decode_wait(std::string_view text) {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (!text.empty() && (!is_number || seconds < 0 || seconds > kWaitSecondsMax)) {
        return fail(
            Code::invalid_argument,
            "'wait' must be a whole number of seconds from 0 to " + std::to_string(kWaitSecondsMax),
            {{"field", "wait"}}
        );
    }
    return Millis(seconds * 1000);
}

// "method" is accepted for clients that send it; a delivery is always a POST.
Result<> check_webhook_config(const json::object& body) {
    const auto config = json::find_object(body, "webhook_config");
    if (!config) {
        return fail(config.error());
    }
    if (*config == nullptr) {
        return {};
    }
    const auto method = json::find_string(**config, "method");
    if (!method) {
        return fail(method.error());
    }
    if (*method && !net::equal_ignoring_case(**method, "POST")) {
        return fail(
            Code::invalid_argument,
            "'webhook_config.method' must be POST: webhooks are delivered by nothing else",
            {{"field", "webhook_config.method"}}
        );
    }
    return {};
}

}  // namespace

Result<Decoded> decode_options(const json::object& body, const Version& version) {
    if (auto webhook = check_webhook_config(body); !webhook) {
        return fail(std::move(webhook.error()));
    }
    auto decoded = execution::begin_decoding(body, "workflows");
    if (!decoded) {
        return decoded;
    }
    jobs::Spec& spec = decoded->submission.spec;
    spec.with_estimates = true;
    spec.dialect_data["api_version"] = version.number;
    if (auto kept =
            execution::keep_objects(body, {"output_config", "execution_config"}, spec.dialect_data);
        !kept) {
        return fail(std::move(kept.error()));
    }
    auto auto_fix = json::find_bool(body, "auto_fix");
    if (!auto_fix) {
        return fail(std::move(auto_fix.error()));
    }
    decoded->submission.auto_fix = auto_fix->value_or(false);
    return decoded;
}

Result<Decoded> decode_request(json::object body, const Version& version) {
    auto decoded = decode_options(body, version);
    if (!decoded) {
        return decoded;
    }
    if (auto inputs = execution::take_inputs(body, "input_params", decoded->submission); !inputs) {
        return fail(std::move(inputs.error()));
    }
    if (auto taken = take_workflow(body, "workflow", "workflow", decoded->submission); !taken) {
        return fail(std::move(taken.error()));
    }
    return decoded;
}

Task<> submit_and_answer(
    Call& call, const Services& services, const Version& version, Submission submission
) {
    const auto patience = decode_wait(call.query_value("wait"));
    if (!patience) {
        co_await refuse(call, services, version, patience.error());
        co_return;
    }
    auto submitted = co_await submit(call, services, std::move(submission));
    if (!submitted) {
        co_await refuse(call, services, version, std::move(submitted.error()));
        co_return;
    }
    const JobId id = submitted->view.job.id;
    Result<execution::Shown> shown;
    if (*patience > Millis(0)) {
        auto view =
            co_await wait_for_end(services, call.caller.tenant, id, Deadline::in(*patience));
        shown = co_await look_up(services, std::move(view));
    } else if (submitted->replayed) {
        shown = co_await look_up(services, std::move(submitted->view));
    } else {
        shown = execution::Shown{std::move(submitted->view)};  // nothing was told or tried yet
    }
    auto encoded = co_await encode(call, services, std::move(shown));
    if (!encoded) {
        co_await refuse(call, services, version, std::move(encoded.error()));
        co_return;
    }
    const bool has_ended = *patience > Millis(0) && encoded->has_ended;
    net::Response response = json_response(has_ended ? 200 : 202, encoded->body);
    response.headers.set(
        "Location", std::string(version.prefix) + "/workflows/execution/" + id.to_string()
    );
    if (submitted->replayed) {
        response.headers.set("Idempotency-Replayed", "true");
    }
    co_await send(call, version, std::move(response));
}

void add_version_headers(net::Headers& headers, const Version& version, std::string_view path) {
    headers.set("X-API-Version", std::string(version.number));
    if (!version.deprecated) {
        return;
    }
    headers.set("Deprecation", "true");
    if (path.starts_with(version.prefix) && path.find('>') == std::string_view::npos) {
        path.remove_prefix(version.prefix.size());
        headers.set(
            "Link",
            "<" + std::string(kV2.prefix) + std::string(path) + ">; rel=\"successor-version\""
        );
    }
}

net::Response error_response(
    const Error& error, Time now, const Version& version, std::string_view path
) {
    net::Response response = json_response(
        execution::http_status(error.code),
        json::object{{"error", execution::encode_error(error, now)}}
    );
    execution::add_retry_after(error, response);
    add_version_headers(response.headers, version, path);
    return response;
}

}  // namespace workflows

void add_workflows(Router& router, const Services& services) {
    using namespace workflows;
    using Function = Task<> (*)(Call&, const Services&, const Version&);
    // Both live as long as the program.
    for (const Version* version : {&kV2, &kV1}) {
        const auto add =
            [&](net::Method method, std::string_view path, Function function, json::object operation
            ) {
                Route route;
                route.method = method;
                route.pattern = std::string(version->prefix) + "/workflows/" + std::string(path);
                route.handler = [&services, version, function](Call& call) {
                    return function(call, services, *version);
                };
                route.encode_error = [&services, version](const Error& error) {
                    return error_response(error, services.clock.now(), *version, "");
                };
                route.access = Access::jobs;
                route.weight = function == cancel ? std::optional(0.0) : std::nullopt;
                route.is_stream = function == stream || function == serve_socket;
                route.operation = std::move(operation);
                router.add(std::move(route));
            };
        using net::Method;
        add(Method::post, "execute", execute, operation_execute(*version));
        add(Method::get, "executions", list, operation_list(*version));
        add(Method::get, "execution/{id}", get, operation_get(*version));
        add(Method::del, "execution/{id}", remove_execution, operation_delete(*version));
        add(Method::post, "execution/{id}/cancel", cancel, operation_cancel(*version));
        add(Method::post, "execution/{id}/retry", retry, operation_retry(*version));
        add(Method::get, "execution/{id}/metrics", metrics, operation_metrics(*version));
        add(Method::get, "execution/{id}/explain", explain, operation_explain(*version));
        add(Method::get, "execution/{id}/events", stream, operation_events(*version));
        add(Method::get, "execution/{id}/ws", serve_socket, operation_socket(*version));
    }
    router.add_schemas(schemas());
    router.add_schemas(media_schemas());
    add_workflow_tools(router, services);
    add_named_workflows(router, services);
}

}  // namespace comfyd::api
