#include "api/dialects/comfyui_execute/comfyui_execute.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "api/answer_shelf.hpp"
#include "api/dialects/job_stream.hpp"
#include "api/dialects/kept_outputs.hpp"
#include "api/dialects/or_null.hpp"
#include "api/workflow_source.hpp"
#include "jobs/output_wishes.hpp"

namespace comfyd::api {
namespace comfyui_execute {
namespace {

constexpr std::string_view kStatusNames = "queued, processing, completed, failed, cancelled";
constexpr int kBatchSizeMax = 4096;

std::string upper(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return result;
}

tl::unexpected<Error> wrong(const std::string& field, const std::string& what) {
    return fail(Code::invalid_argument, "'" + field + "' " + what, {{"field", field}});
}

Result<> check_string(const json::object& in, std::string_view section, std::string_view key) {
    const json::value* found = json::find(in, key);
    if (found != nullptr && !found->is_string()) {
        return wrong(std::string(section) + "." + std::string(key), "must be a string");
    }
    return {};
}

struct Range {
    int min = 0;
    int max = 0;
    bool whole = false;
};

Result<> check_number(
    const json::object& in, std::string_view section, std::string_view key, Range range
) {
    const json::value* found = json::find(in, key);
    if (found == nullptr) {
        return {};
    }
    const std::string field = std::string(section) + "." + std::string(key);
    if (!found->is_number()) {
        return wrong(field, "must be a number");
    }
    const double number = found->to_number<double>();
    if (range.whole && number != std::trunc(number)) {
        return wrong(field, "must be a whole number");
    }
    if (!(number >= range.min && number <= range.max)) {
        return wrong(
            field, "must be from " + std::to_string(range.min) + " to " + std::to_string(range.max)
        );
    }
    return {};
}

Result<> check_output_config(const json::object& body) {
    const auto config = json::find_object(body, "output_config");
    if (!config) {
        return fail(config.error());
    }
    if (*config == nullptr) {
        return {};
    }
    if (const auto wishes = jobs::OutputWishes::from_json(**config); !wishes) {
        return fail(wishes.error());
    }
    const json::value* storage = json::find(**config, "storage");
    if (storage == nullptr) {
        return {};
    }
    if (!storage->is_object()) {
        return wrong("output_config.storage", "must be an object");
    }
    for (const std::string_view key : {"provider", "bucket", "path"}) {
        if (auto done = check_string(storage->get_object(), "output_config.storage", key); !done) {
            return done;
        }
    }
    return {};
}

Result<> check_execution_config(const json::object& body) {
    const auto config = json::find_object(body, "execution_config");
    if (!config) {
        return fail(config.error());
    }
    if (*config == nullptr) {
        return {};
    }
    return check_number(**config, "execution_config", "batch_size", {1, kBatchSizeMax, true});
}

std::optional<int> estimated_duration(const jobs::View& view) {
    return view.estimated_remaining_s ? view.estimated_remaining_s : view.estimated_wait_s;
}

// An error object of a run gets the spelling of this API's refusals beside its own.
void add_error_code(json::value& error) {
    if (json::object* object = error.if_object(); object != nullptr && object->contains("code")) {
        const json::value& code = object->at("code");
        if (code.is_string()) {
            (*object)["error_code"] = upper(code.get_string());
        }
    }
}

net::Response error_response(const Error& error) {
    net::Response response = json_response(execution::http_status(error.code), encode_error(error));
    execution::add_retry_after(error, response);
    return response;
}

Task<> execute(Call& call, const Services& services) {
    auto body = co_await read_workflow_body(call, services);
    if (!body) {
        co_await send(call, error_response(body.error()));
        co_return;
    }
    auto decoded = decode_request(std::move(*body));
    if (!decoded) {
        co_await send(call, error_response(decoded.error()));
        co_return;
    }
    auto common = decode_common(call, services, decoded->common, decoded->submission.spec);
    if (!common) {
        co_await send(call, error_response(common.error()));
        co_return;
    }
    decoded->submission.spec.with_estimates = true;
    const auto& webhook = decoded->submission.spec.webhook;
    const std::string webhook_url = webhook ? webhook->url : std::string();
    auto submitted = co_await submit(call, services, std::move(decoded->submission));
    if (!submitted) {
        co_await send(call, error_response(submitted.error()));
        co_return;
    }
    net::Response response = json_response(202, encode_accepted(submitted->view, webhook_url));
    response.headers.set("Location", "/comfyui/execution/" + submitted->view.job.id.to_string());
    if (submitted->replayed) {
        response.headers.set("Idempotency-Replayed", "true");
    }
    co_await send(call, std::move(response));
}

// `kept`: is given what the answer is; null: nobody is.
Task<> answer(
    Call& call, const Services& services, Result<jobs::View> view, KeptAnswer* kept = nullptr
) {
    if (!view) {
        co_await send(call, error_response(view.error()));
        co_return;
    }
    auto shown = co_await execution::complete_view(services, std::move(*view));
    if (!shown) {
        co_await send(call, error_response(shown.error()));
        co_return;
    }
    if (kept != nullptr) {
        kept->made_of(shown->view.job, shown->webhook_delivered);
    }
    json::object body = encode_status(*shown, execution::links_of(call, services));
    auto completed = co_await complete_answer(
        services, std::move(shown->view.job), body, execution::outputs_in(body)
    );
    if (!completed) {
        co_await send(call, error_response(completed.error()));
        co_return;
    }
    net::Response response = json_response(200, body);
    if (kept != nullptr) {
        kept->keep(response.body);
    }
    co_await send(call, std::move(response));
}

using Action = Task<Result<jobs::View>> (jobs::Service::*)(std::string tenant, JobId id);

// Does it to the execution that the path names, and answers with it.
Task<> act(Call& call, const Services& services, Action action) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await send(call, error_response(id.error()));
        co_return;
    }
    auto view = co_await (services.jobs.*action)(call.caller.tenant, *id);
    co_await answer(call, services, std::move(view));
}

Task<> get(Call& call, const Services& services) {
    const auto id = co_await find_job_id(call, services, call.path_parameters.at(0));
    if (!id) {
        co_await send(call, error_response(id.error()));
        co_return;
    }
    KeptAnswer kept(call, services, *id, "comfyui-execute");
    const auto earlier = co_await kept.find();
    if (earlier) {
        co_await send(call, encoded_response(200, earlier->body));
        co_return;
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    co_await answer(call, services, std::move(view), &kept);
}

Task<> cancel(Call& call, const Services& services) {
    return act(call, services, &jobs::Service::cancel);
}

Task<> list(Call& call, const Services& services) {
    auto query = execution::decode_list_query(call, execution::states_of, kStatusNames);
    if (!query) {
        co_await send(call, error_response(query.error()));
        co_return;
    }
    auto body =
        co_await execution::list_executions(call, services, std::move(*query), encode_status);
    if (!body) {
        co_await send(call, error_response(body.error()));
        co_return;
    }
    co_await send(call, json_response(200, *body));
}

Task<> stream(Call& call, const Services& services) {
    StreamShape shape;
    shape.name = "comfyui-execute";
    shape.state = encode_status;
    shape.event = encode_message;
    shape.refuse = error_response;
    co_await stream_job(call, services, std::move(shape));
}

}  // namespace

Result<Decoded> decode_request(json::object body) {
    if (auto checked = check_output_config(body); !checked) {
        return fail(std::move(checked.error()));
    }
    if (auto checked = check_execution_config(body); !checked) {
        return fail(std::move(checked.error()));
    }
    auto decoded = execution::begin_decoding(body, "comfyui-execute");
    if (!decoded) {
        return decoded;
    }
    jobs::Spec& spec = decoded->submission.spec;
    if (auto kept =
            execution::keep_objects(body, {"output_config", "execution_config"}, spec.dialect_data);
        !kept) {
        return fail(std::move(kept.error()));
    }
    if (auto inputs = execution::take_inputs(body, "inputs", decoded->submission); !inputs) {
        return fail(std::move(inputs.error()));
    }
    if (auto taken = take_workflow(body, "workflow", "workflow", decoded->submission); !taken) {
        return fail(std::move(taken.error()));
    }
    return decoded;
}

json::object encode_accepted(const jobs::View& view, std::string_view webhook_url) {
    const bool waits =
        view.job.state == jobs::State::queued || view.job.state == jobs::State::retry_waiting;
    json::object body;
    body["status"] = "accepted";
    body["execution_id"] = view.job.id.to_string();
    body["estimated_duration"] = or_null(estimated_duration(view));
    body["queue_position"] = waits ? or_null(view.queue_position) : json::value(0);
    body["webhook_url"] = webhook_url.empty() ? json::value(nullptr) : json::value(webhook_url);
    if (const json::value* warnings = json::find(view.job.dialect_data, "warnings")) {
        body["warnings"] = *warnings;
    }
    return body;
}

json::object encode_status(const execution::Shown& shown, const execution::Links& links) {
    json::object body = execution::encode_execution(shown, links);
    body["estimated_duration"] = or_null(estimated_duration(shown.view));
    add_error_code(body["error"]);
    return body;
}

json::object encode_message(json::object message) {
    if (json::value* error = message.if_contains("error")) {
        add_error_code(*error);
    }
    return message;
}

json::object encode_error(const Error& error) {
    json::object details = error.details;
    if (error.code == Code::invalid_workflow || error.code == Code::no_capable_worker) {
        for (const std::string_view key : {"missing_nodes", "invalid_connections"}) {
            if (!details.contains(key)) {
                details[key] = json::array();
            }
        }
    }
    details.emplace("suggested_action", info(error.code).suggested_action);
    return {
        {"status", "error"},
        {"error_code", upper(to_string(error.code))},
        {"message", error.message},
        {"details", std::move(details)},
    };
}

}  // namespace comfyui_execute

void add_comfyui_execute(Router& router, const Services& services) {
    using namespace comfyui_execute;
    using Function = Task<> (*)(Call&, const Services&);
    const auto add =
        [&](net::Method method, std::string pattern, Function function, json::object operation) {
            Route route;
            route.method = method;
            route.pattern = std::move(pattern);
            route.handler = [&services, function](Call& call) { return function(call, services); };
            route.encode_error = error_response;
            route.access = Access::jobs;
            route.weight = function == cancel ? std::optional(0.0) : std::nullopt;
            route.is_stream = function == stream;
            route.operation = std::move(operation);
            router.add(std::move(route));
        };
    using net::Method;
    add(Method::post, "/comfyui/execute", execute, operation_execute());
    add(Method::get, "/comfyui/executions", list, operation_list());
    add(Method::get, "/comfyui/execution/{id}", get, operation_get());
    add(Method::post, "/comfyui/execution/{id}/cancel", cancel, operation_cancel());
    add(Method::get, "/comfyui/execution/{id}/events", stream, operation_events());
    router.add_schemas(schemas());
}

}  // namespace comfyd::api
