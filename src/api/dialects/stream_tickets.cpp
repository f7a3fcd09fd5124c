// POST /v2/stream-tickets: what a page shows in the address of an event stream in place of its key.
#include <optional>
#include <string>
#include <utility>

#include "api/dialects/dialects.hpp"
#include "api/dialects/execution/execution.hpp"
#include "api/dialects/literal.hpp"
#include "api/dialects/workflows/workflows.hpp"

namespace comfyd::api {
namespace {

constexpr std::uint64_t kBodyBytesMax = 4096;

// The execution that the ticket is to be for; empty: all of the tenant's. It must be there.
Task<Result<std::string>> wanted_execution(Call& call, const Services& services) {
    auto text = co_await call.exchange.read_body(kBodyBytesMax);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
        co_return std::string();
    }
    const auto body = json::parse_object(*text);
    if (!body) {
        co_return fail(body.error());
    }
    auto named = json::find_string(*body, "execution_id");
    if (!named) {
        co_return fail(std::move(named.error()));
    }
    if (!*named) {
        co_return std::string();
    }
    const auto id = co_await find_job_id(call, services, **named);
    if (!id) {
        co_return fail(id.error());
    }
    auto view = co_await services.jobs.get(call.caller.tenant, *id);
    if (!view) {
        co_return fail(std::move(view.error()));
    }
    co_return id->to_string();
}

Task<> post_ticket(Call& call, const Services& services, const auth::Tickets& tickets) {
    auto execution = co_await wanted_execution(call, services);
    if (!execution) {
        co_await send(
            call,
            workflows::error_response(
                execution.error(), services.clock.now(), workflows::kV2, call.request.path
            )
        );
        co_return;
    }
    const auto ticket = tickets.issue(call.caller, *execution, services.clock.now());
    json::object body{{"ticket", ticket.text}, {"expires_at", to_rfc3339(ticket.expires_at)}};
    body["execution_id"] = execution->empty() ? json::value(nullptr) : json::value(*execution);
    net::Response response = json_response(201, body);
    response.headers.set("Cache-Control", "no-store");
    workflows::add_version_headers(response.headers, workflows::kV2, call.request.path);
    co_await send(call, std::move(response));
}

json::object operation() {
    return literal(R"json({
        "operationId": "postStreamTicket",
        "tags": ["workflows"],
        "summary": "A ticket for event streams, for pages that can send no header",
        "description": "EventSource and WebSocket of a browser send no Authorization. Open the stream with ?ticket= within a minute; streams that are open stay so. It is good for streams alone: those of the key's tenant, or of one execution.",
        "requestBody": {"required": false, "content": {"application/json": {"schema": {
            "type": "object",
            "properties": {"execution_id": {"type": "string", "description": "Only streams of this execution."}}
        }}}},
        "responses": {"201": {
            "description": "The ticket.",
            "content": {"application/json": {"schema": {
                "type": "object",
                "required": ["ticket", "expires_at", "execution_id"],
                "properties": {
                    "ticket": {"type": "string"},
                    "expires_at": {"type": "string", "format": "date-time"},
                    "execution_id": {"type": "string", "nullable": true}}
            }}}
        }}
    })json");
}

}  // namespace

void add_stream_tickets(Router& router, const Services& services) {
    Route route;
    route.method = net::Method::post;
    route.pattern = "/v2/stream-tickets";
    route.handler = [&services, &tickets = router.tickets()](Call& call) {
        return post_ticket(call, services, tickets);
    };
    route.encode_error = [&services](const Error& error) {
        return workflows::error_response(error, services.clock.now(), workflows::kV2, "");
    };
    route.access = Access::jobs_read;
    route.operation = operation();
    router.add(std::move(route));
}

}  // namespace comfyd::api
