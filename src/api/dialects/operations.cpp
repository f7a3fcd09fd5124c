// Routes for those who run comfyd: health, metrics, version, and the pages that explain the API.
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "api/dialects/dialects.hpp"
#include "api/dialects/named/named.hpp"
#include "api/dialects/pages.hpp"

namespace comfyd::api {
namespace {

// Every route is known before the first request, so the part that all callers share is made once.
struct CachedDocument {
    std::once_flag once;
    json::object document;
};

net::Response text_response(std::string content_type, std::string body) {
    net::Response response;
    response.headers.set("Content-Type", std::move(content_type));
    response.headers.set("X-Content-Type-Options", "nosniff");
    response.body = std::move(body);
    return response;
}

net::Response page(std::string_view html) {
    net::Response response = text_response("text/html; charset=utf-8", std::string(html));
    response.headers.set(
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    return response;
}

Task<> show_ready(Call& call, const Services& services) {
    const auto ready = services.ready();
    if (ready) {
        return send(call, json_response(200, json::object{{"status", "ready"}}));
    }
    return send(
        call,
        json_response(
            503,
            json::object{
                {"status", "not_ready"},
                {"code", to_string(ready.error().code)},
                {"reason", ready.error().message},
            }
        )
    );
}

Task<> show_metrics(Call& call, const Services& services) {
    auto text = co_await services.metrics_text();
    co_await send(call, text_response("text/plain; version=0.0.4; charset=utf-8", std::move(text)));
}

Task<> show_openapi(
    Call& call,
    const Services& services,
    const Router& router,
    std::shared_ptr<CachedDocument> cached
) {
    std::call_once(cached->once, [&] { cached->document = router.openapi(); });
    json::object document = cached->document;
    auto added = co_await named::document_workflows(services, call.caller.tenant, document);
    if (!added) {
        co_await send(call, encode_error(added.error()));
        co_return;
    }
    co_await send(call, text_response("application/json", json::serialize(document)));
}

// People get the dashboard, programs a page that says where to go on.
Task<> show_start(Call& call) {
    const bool is_browser =
        call.request.headers.get("Accept").find("text/html") != std::string_view::npos;
    net::Response response = page(kLandingPage);
    if (is_browser) {
        response = {};
        response.status = 302;
        response.headers.set("Location", "/ui/");
    }
    response.headers.set("Vary", "Accept");
    return send(call, std::move(response));
}

json::object describe(const char* operation_id, const char* summary) {
    return {
        {"operationId", operation_id},
        {"summary", summary},
        {"tags", json::array{"operations"}},
    };
}

}  // namespace

void add_operations(Router& router, const Services& services) {
    const auto add = [&router](
                         const char* pattern,
                         Handler handler,
                         json::object operation,
                         Access access = Access::open
                     ) {
        router.add(Route{
            net::Method::get,
            pattern,
            std::move(handler),
            encode_error,
            access,
            std::move(operation),
        });
    };
    add(
        "/healthz",
        [](Call& call) { return send(call, json_response(200, json::object{{"status", "ok"}})); },
        describe("getHealthz", "Whether the process is alive")
    );
    add(
        "/readyz",
        [&services](Call& call) { return show_ready(call, services); },
        describe("getReadyz", "Whether jobs can be taken now; 503 and the reason when not")
    );
    add(
        "/version",
        [](Call& call) {
            const json::object version{{"name", "comfyd"}, {"version", COMFYD_VERSION}};
            return send(call, json_response(200, version));
        },
        describe("getVersion", "The version that runs")
    );
    add(
        "/metrics",
        [&services](Call& call) { return show_metrics(call, services); },
        describe("getMetrics", "Prometheus metrics"),
        services.options.metrics_are_open ? Access::open : Access::metrics
    );
    add(
        "/openapi.json",
        [&router, &services, cached = std::make_shared<CachedDocument>()](Call& call) {
            return show_openapi(call, services, router, cached);
        },
        describe("getOpenapi", "This document, with the named workflows of the caller")
    );
    add("/docs", [](Call& call) { return send(call, page(kDocsPage)); }, {});
    if (!services.options.has_frontend) {
        add("/", show_start, {});
    }
}

}  // namespace comfyd::api
