#include "api/dialects/fleet/fleet.hpp"

#include <charconv>
#include <memory>
#include <utility>

#include "api/dialects/fleet/fleet_openapi.hpp"

namespace comfyd::api {
namespace {

using Shared = std::shared_ptr<const FleetServices>;

constexpr std::size_t kBodyBytesMax = 64 * 1024;
constexpr int kEventsMax = 1'000;
constexpr int kLinesMax = 5'000;

Task<> answer(Call& call, Result<json::object> result) {
    co_await send(
        call, result ? json_response(200, std::move(*result)) : encode_error(result.error())
    );
}

// The text of a query where it is a number; Code::invalid_argument.
template <class Number>
Result<std::optional<Number>> read_number(
    const Call& call, std::string_view name, Number min, Number max
) {
    const std::string_view text = call.query_value(name);
    if (text.empty()) {
        return std::nullopt;
    }
    Number number{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number < min ||
        number > max) {
        return fail(
            Code::invalid_argument,
            "'" + std::string(name) + "' is a whole number from " + std::to_string(min) + " to " +
                std::to_string(max),
            {{"field", name}}
        );
    }
    return number;
}

std::optional<std::string> text_of(const Call& call, std::string_view name) {
    const std::string_view text = call.query_value(name);
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

Task<> show(Call& call, Shared services) {
    auto shown = co_await services->show();
    co_await answer(call, std::move(shown));
}

using Listing = std::function<Task<Result<json::object>>(FleetServices::Events)>;

Task<> list(Call& call, const Listing& listing) {
    const auto limit = read_number<int>(call, "limit", 1, kEventsMax);
    const auto before = read_number<std::uint64_t>(call, "before", 0, UINT64_MAX);
    if (!limit || !before) {
        co_await send(call, encode_error(limit ? before.error() : limit.error()));
        co_return;
    }
    FleetServices::Events query{text_of(call, "pool"), text_of(call, "instance"), *before};
    query.limit = limit->value_or(query.limit);
    auto events = co_await listing(std::move(query));
    co_await answer(call, std::move(events));
}

Task<> list_events(Call& call, Shared services) {
    co_await list(call, services->events);
}

Task<> list_decisions(Call& call, Shared services) {
    co_await list(call, services->decisions);
}

Result<std::optional<int>> read_size(std::string_view text, int most) {
    const auto body = json::parse_object(text);
    if (!body) {
        return fail(body.error());
    }
    const auto size = json::find_int(*body, "size");
    const bool is_size = size && body->contains("size") && body->size() == 1 &&
                         (!*size || (**size >= 0 && **size <= most));
    if (!is_size) {
        return fail(
            Code::invalid_argument,
            "'size' is a whole number from 0 to " + std::to_string(most) +
                ", or null for the size that is configured, and all that can be set",
            {{"field", "size"}}
        );
    }
    return *size ? std::optional(static_cast<int>(**size)) : std::nullopt;
}

Task<> resize(Call& call, Shared services) {
    auto text = co_await call.exchange.read_body(kBodyBytesMax);
    if (!text) {
        co_await send(call, encode_error(text.error()));
        co_return;
    }
    const auto size = read_size(*text, services->size_max);
    if (!size) {
        co_await send(call, encode_error(size.error()));
        co_return;
    }
    auto pool = co_await services->resize(call.path_parameters.front(), *size);
    co_await answer(call, std::move(pool));
}

Task<> resume(Call& call, Shared services) {
    auto pool = co_await services->resume(call.path_parameters.front());
    co_await answer(call, std::move(pool));
}

Task<> let_go(Call& call, Shared services) {
    auto instance = co_await services->let_go(call.path_parameters.front());
    co_await answer(call, std::move(instance));
}

Task<> show_logs(Call& call, Shared services) {
    constexpr int kLines = 200;
    const auto lines = read_number<int>(call, "lines", 1, kLinesMax);
    if (!lines) {
        co_await send(call, encode_error(lines.error()));
        co_return;
    }
    auto text = co_await services->logs(call.path_parameters.front(), lines->value_or(kLines));
    if (!text) {
        co_await send(call, encode_error(text.error()));
        co_return;
    }
    const json::object body{{"instance", call.path_parameters.front()}, {"text", *text}};
    co_await send(call, json_response(200, body));
}

}  // namespace

void add_fleet(Router& router, FleetServices given) {
    const auto services = std::make_shared<const FleetServices>(std::move(given));
    using Handle = Task<> (*)(Call&, Shared);
    const auto add = [&router, &services](
                         net::Method method,
                         const char* pattern,
                         Handle handle,
                         const char* id,
                         const char* operation
                     ) {
        router.add(Route{
            method,
            pattern,
            [services, handle](Call& call) { return handle(call, services); },
            encode_error,
            Access::admin,
            fleet_operation(id, "admin", operation)
        });
    };
    add(net::Method::get, "/admin/v1/fleet", show, "adminShowFleet", R"json({
        "summary": "The pools whose machines comfyd starts and stops, and what happened to them",
        "responses": {"200": ["Pools with their instances.", "Fleet"]}
    })json");
    add(net::Method::get, "/admin/v1/fleet/events", list_events, "adminListFleetEvents", R"json({
        "summary": "Why each machine was started or stopped, the newest first",
        "parameters": [
            {"name": "pool", "in": "query", "schema": {"type": "string"}},
            {"name": "instance", "in": "query", "schema": {"type": "string"}},
            {"name": "before", "in": "query", "description": "The smallest number of the page before.", "schema": {"type": "integer", "minimum": 0}},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}}
        ],
        "responses": {"200": ["Some of them.", "FleetEvents"]}
    })json");
    add(net::Method::get,
        "/admin/v1/fleet/decisions",
        list_decisions,
        "adminListFleetDecisions",
        R"json({
        "summary": "How many machines each scaled pool shall have now and why, and what was decided before, the newest first",
        "parameters": [
            {"name": "pool", "in": "query", "schema": {"type": "string"}},
            {"name": "before", "in": "query", "description": "The smallest number of the page before.", "schema": {"type": "integer", "minimum": 0}},
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}}
        ],
        "responses": {"200": ["What is decided now, of the pools that this node leads, and some of the decisions before.", "FleetDecisions"]}
    })json");
    add(net::Method::put, "/admin/v1/fleet/pools/{name}", resize, "adminResizePool", R"json({
        "summary": "Set how many machines a pool has",
        "description": "It stays so over restarts, until another size is configured.",
        "requestBody": "FleetPoolSize",
        "responses": {"200": ["The pool.", "FleetPool"], "404": ["There is none."], "409": ["Somebody else changed it meanwhile."]}
    })json");
    add(net::Method::post,
        "/admin/v1/fleet/pools/{name}/resume",
        resume,
        "adminResumePool",
        R"json({
        "summary": "Start machines of a pool again that was paused because its starts failed",
        "responses": {"200": ["The pool.", "FleetPool"], "404": ["There is none."], "409": ["Somebody else changed it meanwhile."]}
    })json");
    add(net::Method::del,
        "/admin/v1/fleet/instances/{id}",
        let_go,
        "adminRemoveInstance",
        R"json({
        "summary": "Let a machine end its jobs, and remove it",
        "description": "Jobs that do not end in time go back to the queue. The pool keeps its size: another machine takes its place.",
        "responses": {"200": ["The instance.", "FleetInstance"], "404": ["There is none."], "409": ["Somebody else changed the pool meanwhile."]}
    })json");
    add(net::Method::get,
        "/admin/v1/fleet/instances/{id}/logs",
        show_logs,
        "adminShowInstanceLogs",
        R"json({
        "summary": "The latest lines that a machine has printed",
        "parameters": [{"name": "lines", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 5000, "default": 200}}],
        "responses": {"200": ["Text, the newest line last.", "FleetLogs"], "404": ["There is none."], "409": ["Another node leads it."]}
    })json");
    router.add_schemas(fleet_schemas());
}

}  // namespace comfyd::api
