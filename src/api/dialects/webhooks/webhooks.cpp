#include "api/dialects/webhooks/webhooks.hpp"

#include <utility>

#include "api/dialects/workflows/workflows.hpp"

namespace comfyd::api {
namespace webhooks {
namespace {

constexpr std::uint64_t kBodyBytesMax = 128 * 1024;

}  // namespace

void add_route(
    Router& router,
    const Services& services,
    net::Method method,
    const char* pattern,
    Handler handler,
    json::object operation
) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    route.handler = std::move(handler);
    route.encode_error = [&services](const Error& error) {
        return workflows::error_response(error, services.clock.now(), workflows::kV2, "");
    };
    route.access = Access::jobs;
    route.operation = std::move(operation);
    router.add(std::move(route));
}

Task<> refuse(Call& call, const Services& services, Error error) {
    return send(
        call,
        workflows::error_response(error, services.clock.now(), workflows::kV2, call.request.path)
    );
}

Task<> answer(Call& call, net::Response response) {
    workflows::add_version_headers(response.headers, workflows::kV2, call.request.path);
    response.headers.set("Cache-Control", "no-store");
    return send(call, std::move(response));
}

Task<Result<json::object>> read_members(Call& call) {
    auto text = co_await call.exchange.read_body(kBodyBytesMax);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
        co_return json::object();
    }
    co_return json::parse_object(*text);
}

}  // namespace webhooks

void add_webhooks(Router& router, const Services& services) {
    router.add_schemas(webhooks::schemas());
    webhooks::add_endpoints(router, services);
    webhooks::add_deliveries(router, services);
}

}  // namespace comfyd::api
