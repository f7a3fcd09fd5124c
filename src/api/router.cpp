#include "api/router.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "api/gate.hpp"
#include "api/large_requests.hpp"
#include "api/openapi.hpp"
#include "api/route_table.hpp"
#include "api/routed_exchange.hpp"
#include "base/assert.hpp"
#include "base/log.hpp"
#include "limits/address_guard.hpp"
#include "limits/rate_limiter.hpp"
#include "observe/metrics.hpp"

namespace comfyd::api {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::string_view kUnmatched = "unmatched";
constexpr std::size_t kRequestIdBytesMax = 128;
constexpr const char* kAllowedHeaders =
    "Authorization, X-API-Key, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Range, "
    "If-Match, "
    "If-None-Match, "
    "If-Range, X-Request-Id, X-API-Version, X-Webhook-URL, traceparent, tracestate";
constexpr int kMisdirectedRequest = 421;
constexpr unsigned kLargeRequestThreads = 2;

bool is_request_id(std::string_view text) {
    return !text.empty() && text.size() <= kRequestIdBytesMax &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                      c == '-' || c == '_' || c == '.' || c == ':';
           });
}

std::string allow_header(const std::vector<const Route*>& routes) {
    std::vector<std::string_view> names;
    const auto add = [&names](std::string_view name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    };
    for (const Route* route : routes) {
        add(net::to_string(route->method));
        if (route->method == net::Method::get) {
            add("HEAD");
        }
    }
    add("OPTIONS");
    std::string joined;
    for (const std::string_view name : names) {
        joined += joined.empty() ? "" : ", ";
        joined += name;
    }
    return joined;
}

}  // namespace

std::string_view Call::query_value(std::string_view name) const {
    for (const auto& [key, value] : query) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

std::optional<auth::Scope> needed_scope(const Route& route) {
    const bool reads = route.method == net::Method::get || route.method == net::Method::head;
    switch (route.access) {
        case Access::jobs:
            return reads ? auth::Scope::jobs_read : auth::Scope::jobs_write;
        case Access::jobs_read:
            return auth::Scope::jobs_read;
        case Access::assets:
            return reads ? auth::Scope::assets_read : auth::Scope::assets_write;
        case Access::workflows:
            return reads ? auth::Scope::workflows_read : auth::Scope::workflows_write;
        case Access::metrics:
            return auth::Scope::metrics_read;
        case Access::admin:
            return auth::Scope::admin;
        case Access::open:
            return std::nullopt;
        case Access::undeclared:
            break;
    }
    return auth::Scope::admin;
}

double weight_of(const Route& route) {
    constexpr double kSmall = 0.2;
    if (route.weight) {
        return *route.weight;
    }
    switch (route.access) {
        case Access::jobs:
        case Access::assets:
        case Access::workflows:
            break;
        case Access::jobs_read:
            return kSmall;
        default:
            return 0;
    }
    switch (route.method) {
        case net::Method::post:
        case net::Method::put:
        case net::Method::patch:
            return route.streams_body ? kSmall : 1;
        default:
            return 0;
    }
}

class Router::Impl {
public:
    Impl(const auth::Authenticator& authenticator, observe::Metrics& metrics, Clock& clock)
        : gate(authenticator, clock), metrics_(metrics), clock_(clock) {}

    RouteTable table;
    json::object schemas;
    Gate gate;
    limits::RateLimiter* rates = nullptr;

    Task<> handle(net::Exchange& exchange) const {
        const auto started = Steady::now();
        const net::Request& request = exchange.request();
        const std::string_view sent_id = request.headers.get(kRequestIdHeader);
        RoutedExchange routed(
            exchange,
            is_request_id(sent_id) ? std::string(sent_id) : Uuid::make(clock_.now()).to_string(),
            common_headers(request)
        );
        const auto segments = split_path(request.path);
        RouteTable::Match match;
        if (segments) {
            match = table.match(request.method, *segments);
        }
        std::optional<AuditTrail> trail;
        if (gate.rules.journal != nullptr && match.route != nullptr) {
            trail.emplace(AuditTrail::Parts{
                *gate.rules.journal, gate.rules.audited, clock_, request, *match.route
            });
            trail->set_request(routed.request_id(), match.parameters);
            routed.set_trail(*trail);
        }
        std::optional<std::string> failure;
        try {
            co_await dispatch(routed, match, segments.has_value(), trail ? &*trail : nullptr);
            if (!routed.answered()) {
                failure = "the handler returned without an answer";
            }
        } catch (const std::exception& error) {
            failure = error.what();
        } catch (...) {
            failure = "an exception of unknown type";
        }
        if (failure) {
            co_await report(routed, match, std::move(*failure));
        }
        const auto until = routed.answered_at().value_or(Steady::now());
        metrics_.http_request(
            label(match),
            net::to_string(request.method),
            routed.status(),
            std::chrono::duration<double>(until - started).count()
        );
    }

private:
    static std::string_view label(const RouteTable::Match& match) {
        if (match.route != nullptr) {
            return match.route->pattern;
        }
        return match.others.empty() ? kUnmatched : std::string_view(match.others[0]->pattern);
    }

    static net::Response shape(const RouteTable::Match& match, const Error& error) {
        if (match.route != nullptr) {
            return match.route->encode_error(error);
        }
        return match.others.empty() ? encode_error(error) : match.others[0]->encode_error(error);
    }

    net::Headers common_headers(const net::Request& request) const {
        net::Headers headers = gate.cors_headers(request);
        headers.set(kVersionHeader, std::string(version_of(request)));
        headers.set("X-Content-Type-Options", "nosniff");
        headers.set("Referrer-Policy", "no-referrer");  // addresses of streams have tickets in them
        // Pictures are asked for without a word of which page shows them.
        headers.set(
            "Cross-Origin-Resource-Policy",
            gate.rules.origins.empty() ? "same-origin" : "cross-origin"
        );
        headers.set("Cross-Origin-Opener-Policy", "same-origin");
        if (gate.rules.sessions != nullptr && request.headers.contains("Cookie")) {
            headers.set("Cache-Control", "private, no-cache");  // unless the answer says otherwise
        }
        if (gate.rules.origin.starts_with("https://")) {
            headers.set("Strict-Transport-Security", "max-age=31536000");
        }
        return headers;
    }

    // Everything between a matched path and its handler. Failures are answered here.
    Task<> dispatch(
        RoutedExchange& exchange,
        const RouteTable::Match& match,
        bool path_is_valid,
        AuditTrail* trail
    ) const {
        const net::Request& request = exchange.request();
        if (gate.addresses != nullptr && gate.addresses->blocks(request.peer)) {
            co_await refuse(
                exchange,
                match,
                Error(Code::forbidden, "this server answers nobody at your address")
            );
            co_return;
        }
        if (!gate.rules.hosts.allows(request.headers.get("Host"))) {
            co_await refuse_host(exchange, match);
            co_return;
        }
        if (!path_is_valid) {
            co_await refuse(
                exchange,
                match,
                Error(Code::invalid_argument, "the path of the request is not a valid path")
            );
            co_return;
        }
        if (request.method == net::Method::options && match.route == nullptr &&
            !match.others.empty()) {
            co_await answer_options(exchange, match);
            co_return;
        }
        if (match.route == nullptr) {
            co_await refuse_unknown(exchange, match);
            co_return;
        }
        if (auto checked = gate.check_page(request); !checked) {
            co_await refuse(exchange, match, std::move(checked.error()));
            co_return;
        }
        auto query = net::parse_query(request.query);
        auto caller = co_await gate.admit(request, *match.route, match.parameters, query, trail);
        if (!caller) {
            co_await refuse(exchange, match, std::move(caller.error()));
            co_return;
        }
        if (!caller->tenant.empty()) {
            exchange.trust_peer();
        }
        auto is_allowed = co_await take_of_rate(exchange, *caller, weight_of(*match.route));
        if (!is_allowed) {
            co_await refuse(exchange, match, std::move(is_allowed.error()));
            co_return;
        }
        Call call{
            exchange,
            request,
            std::move(*caller),
            match.parameters,
            std::move(query),
            trail != nullptr ? &trail->made : nullptr,
        };
        if (!match.route->streams_body && LargeRequests::is_large(request)) {
            co_await large_.run(match.route->handler, call);
        } else {
            co_await match.route->handler(call);
        }
    }

    Task<Result<>> take_of_rate(RoutedExchange& exchange, const auth::Caller& caller, double weight)
        const {
        auto demand = rates == nullptr ? std::nullopt : rates->demand_of(caller, weight);
        if (!demand) {
            co_return Result<>();
        }
        const auto verdict = co_await rates->take(std::move(*demand));
        exchange.add_header("RateLimit-Policy", verdict.policies);
        exchange.add_header("RateLimit", verdict.state);
        co_return verdict.allowed ? Result<>() : fail(verdict.error());
    }

    static Task<> refuse(RoutedExchange& exchange, const RouteTable::Match& match, Error error) {
        net::Response response = shape(match, error);
        add_wait(error, response);
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);  // a client that is gone needs no answer
    }

    static Task<> refuse_host(RoutedExchange& exchange, const RouteTable::Match& match) {
        net::Response response = shape(
            match,
            Error(
                Code::forbidden,
                "this server is not known by the name in the Host header of the request. If it is "
                "yours, add the name to 'hosts' (COMFYD_HOSTS), or set 'public_url' to the address "
                "that clients use"
            )
        );
        response.status = kMisdirectedRequest;
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    static Task<> refuse_unknown(RoutedExchange& exchange, const RouteTable::Match& match) {
        const net::Request& request = exchange.request();
        if (match.others.empty()) {
            co_await refuse(
                exchange,
                match,
                Error(
                    Code::not_found,
                    "there is nothing at " + request.path + "; /openapi.json lists what there is"
                )
            );
            co_return;
        }
        const std::string allow = allow_header(match.others);
        net::Response response = shape(
            match,
            Error(
                Code::method_not_allowed,
                request.path + " does not allow " + request.method_name + ", only " + allow
            )
        );
        response.headers.set("Allow", allow);
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    Task<> answer_options(RoutedExchange& exchange, const RouteTable::Match& match) const {
        const net::Request& request = exchange.request();
        net::Response response;
        response.status = match.others[0]->options_status;
        const std::string allow = allow_header(match.others);
        response.headers.set("Allow", allow);
        if (request.headers.contains("Access-Control-Request-Method") &&
            gate.allows_origin(request.headers.get("Origin"))) {
            response.headers.set("Access-Control-Allow-Methods", allow);
            response.headers.set("Access-Control-Allow-Headers", kAllowedHeaders);
            response.headers.set("Access-Control-Max-Age", "86400");
        }
        auto sent = co_await exchange.send(std::move(response));
        static_cast<void>(sent);
    }

    static Task<> report(
        RoutedExchange& exchange, const RouteTable::Match& match, std::string failure
    ) {
        log::error(
            "a request handler failed",
            {{"route", label(match)}, {"request_id", exchange.request_id()}, {"error", failure}}
        );
        if (!exchange.answered()) {
            co_await refuse(
                exchange,
                match,
                Error(
                    Code::internal,
                    "comfyd failed to handle this request; its log has the reason under request "
                    "id " +
                        exchange.request_id()
                )
            );
        }
    }

    observe::Metrics& metrics_;
    Clock& clock_;
    mutable LargeRequests large_{kLargeRequestThreads};
};

Router::Router(const auth::Authenticator& authenticator, observe::Metrics& metrics, Clock& clock)
    : impl_(std::make_unique<Impl>(authenticator, metrics, clock)) {}

Router::~Router() = default;

void Router::add(Route route) {
    COMFYD_ASSERT(route.access != Access::undeclared);
    impl_->table.add(std::move(route));
}

void Router::add_schemas(json::object schemas) {
    for (auto& schema : schemas) {
        impl_->schemas[schema.key()] = std::move(schema.value());
    }
}

Task<> Router::handle(net::Exchange& exchange) const {
    return impl_->handle(exchange);
}

json::object Router::openapi() const {
    return make_openapi(impl_->table, impl_->schemas, impl_->gate.requires_keys());
}

void Router::set_rules(Rules rules) {
    impl_->gate.rules = std::move(rules);
}

void Router::set_limits(limits::RateLimiter& rates, limits::AddressGuard& addresses) {
    impl_->rates = &rates;
    impl_->gate.addresses = &addresses;
}

const auth::Tickets& Router::tickets() const {
    return impl_->gate.tickets;
}

net::Response encode_error(const Error& error) {
    json::object body{{"code", to_string(error.code)}, {"message", error.message}};
    if (!error.details.empty()) {
        body["details"] = error.details;
    }
    net::Response response =
        json_response(info(error.code).http_status, json::object{{"error", std::move(body)}});
    add_wait(error, response);
    return response;
}

void add_wait(const Error& error, net::Response& response) {
    const json::value* wait = json::find(error.details, "retry_after");
    if (wait != nullptr && wait->is_int64() && wait->get_int64() > 0) {
        response.headers.set("Retry-After", std::to_string(wait->get_int64()));
    }
}

Task<> send(Call& call, net::Response response) {
    auto sent = co_await call.exchange.send(std::move(response));
    static_cast<void>(sent);
}

net::Response json_response(int status, const json::value& body) {
    return encoded_response(status, json::serialize(body));
}

net::Response encoded_response(int status, std::string body) {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    response.body = std::move(body);
    return response;
}

}  // namespace comfyd::api
