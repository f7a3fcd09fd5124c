// Endpoints: those of the caller's tenant.
#include <algorithm>
#include <chrono>
#include <utility>

#include "api/dialects/webhooks/webhooks.hpp"

namespace comfyd::api::webhooks {
namespace {

using notify::Endpoint;
using notify::EndpointPtr;

constexpr double kOldSecretDaysMax = 30;

// What the path names, if it is the caller's.
Task<Result<EndpointPtr>> find_named(const Call& call, const Services& services) {
    const std::string text = call.path_parameters.front();
    auto refreshed = co_await services.webhooks->endpoints.refresh();
    if (!refreshed) {
        co_return fail(std::move(refreshed.error()));
    }
    const auto id = notify::EndpointId::parse(text);
    const EndpointPtr found = id ? services.webhooks->endpoints.find(*id) : nullptr;
    if (!found || found->tenant != call.caller.tenant) {
        co_return fail(Code::not_found, "there is no endpoint '" + text.substr(0, 64) + "'");
    }
    co_return found;
}

// What operators alone hear of is theirs: nobody else makes such an endpoint, turns it elsewhere,
// learns its secret or ends it.
Result<> check_is_theirs(const Endpoint& endpoint, const Call& call, const Services& services) {
    const auto& events = endpoint.webhook.events;
    const auto found = std::ranges::find_first_of(events, services.webhooks->operator_events);
    if (found == events.end() || call.caller.may(auth::Scope::admin)) {
        return {};
    }
    return fail(
        Code::forbidden,
        "an endpoint that hears of '" + *found + "' needs the scope 'admin'",
        {{"field", "events"}}
    );
}

// The endpoint that the path names, if the caller may change it.
Task<Result<EndpointPtr>> find_theirs(const Call& call, const Services& services) {
    auto found = co_await find_named(call, services);
    auto checked = found ? check_is_theirs(**found, call, services) : Result<>();
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    co_return found;
}

net::Response shown(int status, const Endpoint& endpoint, bool with_secret = false) {
    json::object body = encode_endpoint(endpoint);
    if (with_secret) {
        body["secret"] = endpoint.webhook.secret;
    }
    return json_response(status, body);
}

Task<> list(Call& call, const Services& services) {
    auto refreshed = co_await services.webhooks->endpoints.refresh();
    if (!refreshed) {
        co_await refuse(call, services, std::move(refreshed.error()));
        co_return;
    }
    json::array listed;
    for (const EndpointPtr& endpoint : services.webhooks->endpoints.of_tenant(call.caller.tenant)) {
        listed.emplace_back(encode_endpoint(*endpoint));
    }
    const json::object body{{"count", listed.size()}, {"endpoints", std::move(listed)}};
    co_await answer(call, json_response(200, body));
}

Result<Endpoint> made_of(const json::object& members, const Call& call, const Services& services) {
    Endpoint endpoint;
    endpoint.id = notify::EndpointId::make(services.clock.now());
    endpoint.tenant = call.caller.tenant;
    endpoint.created_at = services.clock.now();
    auto made = changed_endpoint(std::move(endpoint), members, services);
    if (!made) {
        return made;
    }
    auto secret = decode_secret(members, made->scheme);
    if (!secret) {
        return fail(std::move(secret.error()));
    }
    made->webhook.secret = std::move(*secret);
    if (auto checked = check_is_theirs(*made, call, services); !checked) {
        return fail(std::move(checked.error()));
    }
    return made;
}

Task<> create(Call& call, const Services& services) {
    auto members = co_await read_members(call);
    auto made = members ? made_of(*members, call, services) : fail(std::move(members.error()));
    if (!made) {
        co_await refuse(call, services, std::move(made.error()));
        co_return;
    }
    auto saved = co_await services.webhooks->endpoints.save(std::move(*made));
    if (!saved) {
        co_await refuse(call, services, std::move(saved.error()));
        co_return;
    }
    call.has_made((*saved)->id.to_string());
    net::Response response = shown(201, **saved, true);
    response.headers.set("Location", "/v2/webhooks/endpoints/" + (*saved)->id.to_string());
    co_await answer(call, std::move(response));
}

Task<> get(Call& call, const Services& services) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await refuse(call, services, std::move(found.error()));
        co_return;
    }
    co_await answer(call, shown(200, **found));
}

Result<Endpoint> changed_by(
    const Endpoint& before, const json::object& members, const Call& call, const Services& services
) {
    auto changed = changed_endpoint(before, members, services);
    auto checked = changed ? check_is_theirs(*changed, call, services) : Result<>();
    return checked ? std::move(changed) : fail(std::move(checked.error()));
}

Task<> change(Call& call, const Services& services) {
    auto members = co_await read_members(call);
    if (!members) {
        co_await refuse(call, services, std::move(members.error()));
        co_return;
    }
    auto found = co_await find_theirs(call, services);
    auto changed =
        found ? changed_by(**found, *members, call, services) : fail(std::move(found.error()));
    if (!changed) {
        co_await refuse(call, services, std::move(changed.error()));
        co_return;
    }
    auto saved = co_await services.webhooks->endpoints.save(std::move(*changed));
    if (!saved) {
        co_await refuse(call, services, std::move(saved.error()));
        co_return;
    }
    co_await answer(call, shown(200, **saved));
}

Task<> remove(Call& call, const Services& services) {
    auto found = co_await find_theirs(call, services);
    if (!found) {
        co_await refuse(call, services, std::move(found.error()));
        co_return;
    }
    auto removed = co_await services.webhooks->endpoints.remove((*found)->id);
    if (!removed) {
        co_await refuse(call, services, std::move(removed.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await answer(call, std::move(response));
}

// The new secret signs at once, the one before it for a while as well.
Result<Endpoint> rotated(Endpoint endpoint, const json::object& members, Time now) {
    const auto hours = json::find_number(members, "old_secret_hours");
    if (!hours) {
        return fail(hours.error());
    }
    const double kept = hours->value_or(24);
    if (kept < 0 || kept > kOldSecretDaysMax * 24) {
        return fail(
            Code::invalid_argument,
            "'old_secret_hours' must be from 0 to " +
                std::to_string(static_cast<int>(kOldSecretDaysMax * 24)),
            {{"field", "old_secret_hours"}}
        );
    }
    auto secret = decode_secret(members, endpoint.scheme);
    if (!secret) {
        return fail(std::move(secret.error()));
    }
    endpoint.previous_secret = std::exchange(endpoint.webhook.secret, std::move(*secret));
    endpoint.previous_until = now + Millis(static_cast<std::int64_t>(kept * 3'600'000));
    return endpoint;
}

Task<> rotate(Call& call, const Services& services) {
    auto members = co_await read_members(call);
    if (!members) {
        co_await refuse(call, services, std::move(members.error()));
        co_return;
    }
    auto found = co_await find_theirs(call, services);
    auto changed =
        found ? rotated(**found, *members, services.clock.now()) : fail(std::move(found.error()));
    if (!changed) {
        co_await refuse(call, services, std::move(changed.error()));
        co_return;
    }
    auto saved = co_await services.webhooks->endpoints.save(std::move(*changed));
    if (!saved) {
        co_await refuse(call, services, std::move(saved.error()));
        co_return;
    }
    co_await answer(call, shown(200, **saved, true));
}

// A job that never was.
Result<notify::Message> sample(const Endpoint& endpoint, const json::object& members, Time now) {
    const auto name = json::find_string(members, "event");
    if (!name) {
        return fail(name.error());
    }
    using jobs::EventType;
    const std::string wanted = name->value_or("execution.completed");
    notify::Message message;
    message.to = notify::EndpointTarget{endpoint.id};
    for (const auto& [type, state] :
         {std::pair(EventType::queued, jobs::State::queued),
          std::pair(EventType::started, jobs::State::running),
          std::pair(EventType::progress, jobs::State::running),
          std::pair(EventType::completed, jobs::State::completed),
          std::pair(EventType::failed, jobs::State::failed),
          std::pair(EventType::cancelled, jobs::State::cancelled),
          std::pair(EventType::warning, jobs::State::queued)}) {
        if (jobs::webhook_event_name(type) != wanted) {
            continue;
        }
        message.job.id = JobId::make(now);
        message.job.tenant = endpoint.tenant;
        message.job.state = state;
        message.job.created_at = now;
        message.job.metadata = {{"test", true}};
        message.event.job = message.job.id;
        message.event.sequence = 1;
        message.event.type = type;
        message.event.at = now;
        message.event.state = state;
        return message;
    }
    return fail(
        Code::invalid_argument,
        "'event' must be the name of an event, such as execution.completed",
        {{"field", "event"}}
    );
}

Task<> test(Call& call, const Services& services) {
    auto members = co_await read_members(call);
    if (!members) {
        co_await refuse(call, services, std::move(members.error()));
        co_return;
    }
    auto found = co_await find_named(call, services);
    auto message =
        found ? sample(**found, *members, services.clock.now()) : fail(std::move(found.error()));
    if (!message) {
        co_await refuse(call, services, std::move(message.error()));
        co_return;
    }
    const auto begun = std::chrono::steady_clock::now();
    auto outcome = co_await services.webhooks->notifier.try_once(std::move(*message));
    const auto took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begun);
    const bool is_delivered = outcome.kind == notify::Outcome::Kind::delivered;
    const json::object body{
        {"delivered", is_delivered},
        {"status", outcome.status == 0 ? json::value(nullptr) : json::value(outcome.status)},
        {"duration_ms", took.count()},
        {"error", is_delivered ? json::value(nullptr) : json::value(outcome.error)},
    };
    co_await answer(call, json_response(200, body));
}

}  // namespace

void add_endpoints(Router& router, const Services& services) {
    using net::Method;
    constexpr const char* kAll = "/v2/webhooks/endpoints";
    constexpr const char* kOne = "/v2/webhooks/endpoints/{id}";
    const auto add = [&](Method method, const char* pattern, auto handle, json::object operation) {
        add_route(
            router,
            services,
            method,
            pattern,
            [handle, &services](Call& call) { return handle(call, services); },
            std::move(operation)
        );
    };
    add(Method::get, kAll, list, operation_list_endpoints());
    add(Method::post, kAll, create, operation_create_endpoint());
    add(Method::get, kOne, get, operation_get_endpoint());
    add(Method::patch, kOne, change, operation_change_endpoint());
    add(Method::del, kOne, remove, operation_delete_endpoint());
    add(Method::post, "/v2/webhooks/endpoints/{id}/rotate", rotate, operation_rotate_secret());
    add(Method::post, "/v2/webhooks/endpoints/{id}/test", test, operation_test_endpoint());
}

}  // namespace comfyd::api::webhooks
