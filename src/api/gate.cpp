#include "api/gate.hpp"

#include <algorithm>

#include "api/offered_protocols.hpp"
#include "auth/sessions.hpp"
#include "base/crypto.hpp"
#include "limits/address_guard.hpp"

namespace comfyd::api {
namespace {

using Purpose = auth::SessionCookies::Purpose;

constexpr std::string_view kPageTokenHeader = "X-CSRF-Token";
constexpr const char* kExposedHeaders =
    "Location, Retry-After, X-API-Version, X-Request-Id, Deprecation, Sunset, Link, ETag, "
    "Content-Range, Content-Disposition, Accept-Ranges, RateLimit, RateLimit-Policy, traceparent";

bool can_change(const net::Request& request) {
    return request.method != net::Method::get && request.method != net::Method::head &&
           request.method != net::Method::options;
}

bool is_foreign_page(const net::Request& request, const std::string& own_origin) {
    if (!can_change(request) && !request.headers.contains("Upgrade")) {
        return false;
    }
    std::string_view origin = request.headers.get("Origin");
    if (origin.empty() || net::equal_ignoring_case(origin, own_origin)) {
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

// What a page shows where a WebSocket takes no header of its own: one of the protocols that it
// offers is "bearer." and the key or token.
std::string_view token_in_protocols(const net::Request& request) {
    constexpr std::string_view kMark = "bearer.";
    const auto offered = offered_protocols(request);
    const auto found = std::ranges::find_if(offered, [kMark](std::string_view one) {
        return one.starts_with(kMark);
    });
    return found == offered.end() ? std::string_view() : found->substr(kMark.size());
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
    // "null" is whoever hides where it comes from.
    return std::ranges::any_of(rules.origins, [origin](const std::string& allowed) {
        return allowed == "*" || (origin != "null" && net::equal_ignoring_case(allowed, origin));
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
    if (is_foreign_page(request, rules.origin) && !allows_origin(request.headers.get("Origin"))) {
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
    if (!caller && !scope && caller.error().code != Code::rate_limited) {
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
        co_return guarded(request.peer, tickets.redeem(ticket, execution, clock_.now()));
    }
    const std::string_view token = value_of(query, "token");
    const bool takes_token = route.token_in_query || (route.is_stream && rules.key_in_query);
    std::string shown;
    if (header.empty() && !key.empty()) {
        shown = "Bearer " + std::string(key);
    } else if (header.empty() && takes_token && !token.empty()) {
        shown = "Bearer " + std::string(token);
    } else if (const auto offered = token_in_protocols(request);
               header.empty() && route.is_stream && !offered.empty()) {
        shown = "Bearer " + std::string(offered);
    }
    if (rules.sessions != nullptr && authenticator_.required() && header.empty() && shown.empty()) {
        const std::string cookie =
            rules.sessions->cookies().read(request.headers, Purpose::session);
        if (!cookie.empty()) {
            auto known = co_await authenticate(request, cookie);
            co_return known;
        }
    }
    auto caller = co_await authenticate(request.peer, header.empty() ? shown : header);
    co_return caller;
}

// A good ticket or cookie is let in whatever else comes from its address.
Result<auth::Caller> Gate::guarded(const std::string& address, Result<auth::Caller> caller) const {
    if (!caller && caller.error().code == Code::unauthorized && addresses != nullptr) {
        if (auto checked = addresses->check(address, {}); !checked) {
            return fail(std::move(checked.error()));
        }
        addresses->turn_away(address, {});
    }
    return caller;
}

Task<Result<auth::Caller>> Gate::authenticate(
    const std::string& address, std::string_view credential
) const {
    const bool is_guarded = addresses != nullptr && authenticator_.required();
    if (is_guarded) {
        if (auto checked = addresses->check(address, credential); !checked) {
            co_return fail(std::move(checked.error()));
        }
    }
    auto caller = co_await authenticator_.authenticate(credential);
    if (is_guarded && caller) {
        addresses->welcome(address, credential);
    } else if (is_guarded && caller.error().code == Code::unauthorized) {
        addresses->turn_away(address, credential);
    }
    co_return caller;
}

Task<Result<auth::Caller>> Gate::authenticate(const net::Request& request, std::string cookie)
    const {
    if (auto checked = check_own_page(request, cookie); !checked) {
        co_return fail(std::move(checked.error()));
    }
    auto found = co_await rules.sessions->find(std::move(cookie));
    co_return guarded(
        request.peer,
        found ? Result<auth::Caller>(std::move(found->caller)) : fail(std::move(found.error()))
    );
}

Result<> Gate::check_own_page(const net::Request& request, const std::string& cookie) const {
    const auth::SessionCookies& cookies = rules.sessions->cookies();
    if (request.headers.contains("Upgrade") && !cookies.is_own_origin(request)) {
        return fail(
            Code::forbidden, "a stream by cookie is for pages of this server's public address"
        );
    }
    const bool has_token = equal_constant_time(
        request.headers.get(kPageTokenHeader), auth::Sessions::page_token(cookie)
    );
    if (can_change(request) && !(cookies.is_own_page(request) && has_token)) {
        return fail(
            Code::forbidden,
            "a request by cookie that changes something comes from a page of this server, with "
            "the header X-CSRF-Token of GET /login/session"
        );
    }
    return {};
}

}  // namespace comfyd::api
