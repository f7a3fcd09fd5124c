// Which sessions there are: one's own, and for operators those of all.
#include <utility>

#include "api/dialects/identity/identity.hpp"
#include "api/dialects/login/login.hpp"

namespace comfyd::api::login {
namespace {

Error nobody() {
    return Error(
        Code::unauthorized,
        "log in at /login, or send a key; by cookie a change needs the header X-CSRF-Token of "
        "GET /login/session"
    );
}

Task<> send_list(
    Call& call, const LoginServices& services, auth::SessionQuery query, bool is_in_pages
) {
    const auto limit = static_cast<std::size_t>(query.limit);
    auto sessions = co_await services.sessions->list(std::move(query));
    if (!sessions) {
        co_await send(call, encode_error(sessions.error()));
        co_return;
    }
    json::array listed;
    for (const auth::Session& session : *sessions) {
        listed.emplace_back(encode(session));
    }
    json::object body{{"sessions", std::move(listed)}};
    if (is_in_pages) {
        const bool is_all = sessions->size() < limit;
        body["next_cursor"] = is_all ? json::value(nullptr) : json::value(sessions->back().id);
    }
    co_await send(call, json_response(200, body));
}

Task<> list_own(Call& call, const LoginServices& services) {
    if (call.caller.tenant.empty()) {
        co_await send(call, encode_error(nobody()));
        co_return;
    }
    auth::SessionQuery query;
    query.tenant = call.caller.tenant;
    query.owner = call.caller.key_name;
    co_await send_list(call, services, std::move(query), false);
}

Task<> list_all(Call& call, const LoginServices& services) {
    auto page = identity::read_page(call);
    if (!page) {
        co_await send(call, encode_error(page.error()));
        co_return;
    }
    auth::SessionQuery query;
    if (const auto tenant = call.query_value("tenant"); !tenant.empty()) {
        query.tenant = tenant;
    }
    query.after = std::move(page->after);
    query.limit = static_cast<int>(page->limit);
    co_await send_list(call, services, std::move(query), true);
}

Task<> end(Call& call, const LoginServices& services, std::optional<auth::Caller> owner) {
    const std::string id = call.path_parameters.front();
    auto ended = co_await services.sessions->end(id, std::move(owner));
    if (!ended) {
        co_await send(call, encode_error(ended.error()));
        co_return;
    }
    if (!*ended) {
        co_await send(
            call,
            encode_error(Error(Code::not_found, "there is no session '" + id.substr(0, 64) + "'"))
        );
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await send(call, std::move(response));
}

Task<> end_own(Call& call, const LoginServices& services) {
    if (call.caller.tenant.empty()) {
        return send(call, encode_error(nobody()));
    }
    return end(call, services, call.caller);
}

Task<> end_any(Call& call, const LoginServices& services) {
    return end(call, services, std::nullopt);
}

}  // namespace

json::object encode(const auth::Session& session) {
    return {
        {"id", session.id},
        {"tenant", session.tenant},
        {"name", session.owner},
        {"by", session.by},
        {"began_at", to_rfc3339(session.began_at)},
        {"used_at", to_rfc3339(session.used_at)},
        {"ends_at", to_rfc3339(session.ends_at)},
        {"address", session.address},
        {"agent", session.agent},
    };
}

void add_sessions(Router& router, const LoginServices& services) {
    using net::Method;
    const auto add = [&](Method method,
                         const char* pattern,
                         Access access,
                         Function function,
                         json::object operation) {
        add_route(router, services, {method, pattern, access}, function, std::move(operation));
    };
    add(Method::get, "/login/sessions", Access::open, list_own, operation_list());
    add(Method::del, "/login/sessions/{id}", Access::open, end_own, operation_end());
    add(Method::get, "/admin/v1/sessions", Access::admin, list_all, operation_list_all());
    add(Method::del, "/admin/v1/sessions/{id}", Access::admin, end_any, operation_end_any());
}

}  // namespace comfyd::api::login
