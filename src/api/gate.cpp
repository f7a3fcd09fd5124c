#include "api/gate.hpp"

#include <algorithm>

namespace comfyd::api {
namespace {

constexpr const char* kExposedHeaders =
    "Location, Retry-After, X-API-Version, X-Request-Id, Deprecation, Sunset, Link, ETag, "
    "Content-Range, Content-Disposition, Accept-Ranges";

bool is_foreign_page(const net::Request& request) {
    const bool can_change = request.method != net::Method::get &&
                            request.method != net::Method::head &&
                            request.method != net::Method::options;
    if (!can_change && !request.headers.contains("Upgrade")) {
        return false;
    }
    std::string_view origin = request.headers.get("Origin");
    if (origin.empty()) {
        return false;
    }
    if (const auto scheme = origin.find("://"); scheme != std::string_view::npos) {
        origin.remove_prefix(scheme + 3);
    }
    return !net::equal_ignoring_case(origin, request.headers.get("Host"));
}

std::string_view value_of(const Gate::Query& query, std::string_view name) {
    const auto found =
        std::ranges::find_if(query, [name](const auto& entry) { return entry.first == name; });
    return found == query.end() ? std::string_view() : found->second;
}

std::string not_allowed(const net::Request& request, auth::Scope scope) {
    const std::string what = request.method_name + " " + request.path;
    if (!auth::kTenantScopes.contain(scope)) {
        return what + " needs an operator's key (the scope '" + std::string(to_string(scope)) +
               "'), because it concerns all tenants. A key becomes one by its name in "
               "auth.operators (COMFYD_AUTH_OPERATORS) of the server's configuration, or is made "
               "with the scope";
    }
    return what + " needs the scope '" + std::string(to_string(scope)) +
           "', which these credentials do not have";
}

}  // namespace

bool Gate::allows_origin(std::string_view origin) const {
    return std::ranges::any_of(rules.origins, [origin](const std::string& allowed) {
        return allowed == "*" || net::equal_ignoring_case(allowed, origin);
    });
}

net::Headers Gate::cors_headers(const net::Request& request) const {
    net::Headers headers;
    if (rules.origins.empty()) {
        return headers;
    }
    const bool any = std::ranges::find(rules.origins, "*") != rules.origins.end();
    if (!any) {
        headers.set("Vary", "Origin");
    }
    const std::string_view origin = request.headers.get("Origin");
    if (origin.empty() || !allows_origin(origin)) {
        return headers;
    }
    headers.set("Access-Control-Allow-Origin", any ? "*" : std::string(origin));
    headers.set("Access-Control-Expose-Headers", kExposedHeaders);
    return headers;
}

Result<> Gate::check_page(const net::Request& request) const {
    if (!authenticator_.required() && is_foreign_page(request) &&
        !allows_origin(request.headers.get("Origin"))) {
        return fail(
            Code::forbidden,
            "requests from pages of another origin are refused; add the origin to the "
            "CORS configuration to allow it"
        );
    }
    return {};
}

Task<Result<auth::Caller>> Gate::admit(
    const net::Request& request,
    const Route& route,
    const std::vector<std::string>& path_parameters,
    const Query& query,
    AuditTrail* trail
) const {
    auto caller = co_await authenticate(request, route, path_parameters, query);
    if (caller && trail != nullptr) {
        trail->set_caller(*caller);
    }
    const auto scope = needed_scope(route);
    if (!caller && !scope) {
        co_return auth::Caller{.tenant = "", .key_name = "", .scopes = {}};
    }
    if (caller && scope && !caller->may(*scope)) {
        co_return fail(Code::forbidden, not_allowed(request, *scope));
    }
    co_return caller;
}

Task<Result<auth::Caller>> Gate::authenticate(
    const net::Request& request,
    const Route& route,
    const std::vector<std::string>& path_parameters,
    const Query& query
) const {
    const std::string_view header = request.headers.get("Authorization");
    const std::string_view key = request.headers.get("X-API-Key");
    if (const auto ticket = value_of(query, "ticket");
        header.empty() && key.empty() && route.is_stream && !ticket.empty()) {
        const std::string execution = path_parameters.empty() ? "" : path_parameters.front();
        co_return tickets.redeem(ticket, execution, clock_.now());
    }
    const std::string_view token = value_of(query, "token");
    const bool takes_token = route.token_in_query || (route.is_stream && rules.key_in_query);
    std::string shown;
    if (header.empty() && !key.empty()) {
        shown = "Bearer " + std::string(key);
    } else if (header.empty() && takes_token && !token.empty()) {
        shown = "Bearer " + std::string(token);
    }
    auto caller = co_await authenticator_.authenticate(header.empty() ? shown : header);
    co_return caller;
}

}  // namespace comfyd::api
