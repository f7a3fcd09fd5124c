#include "api/dialects/login/login.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "limits/address_guard.hpp"

namespace comfyd::api {
namespace login {
namespace {

constexpr std::uint64_t kBodyBytesMax = 16 * 1024;
constexpr std::size_t kPathBytesMax = 1024;
constexpr std::string_view kSpaces = " \t\r\n";

struct Form {
    bool is_of_page = false;  // else it is JSON, and so is the answer
    std::string key{};
    std::string next{};
    std::string page_token{};
};

// nullptr: there is no such field.
std::string* field_of(Form& form, std::string_view name) {
    return name == "key"          ? &form.key
           : name == "next"       ? &form.next
           : name == "csrf_token" ? &form.page_token
                                  : nullptr;
}

Result<Form> parse_form(const Call& call, const std::string& body) {
    Form form;
    const std::string_view type = call.request.headers.get("Content-Type");
    form.is_of_page = lower(type).starts_with("application/x-www-form-urlencoded");
    if (form.is_of_page) {
        for (const auto& [name, value] : net::parse_query(body)) {
            if (std::string* field = field_of(form, name)) {
                *field = trim(value, kSpaces);
            }
        }
        return form;
    }
    if (trim(body, kSpaces).empty()) {
        return form;
    }
    const auto members = json::parse_object(body);
    if (!members) {
        return fail(members.error());
    }
    for (const char* name : {"key", "next"}) {
        const auto value = json::find_string(*members, name);
        if (!value) {
            return fail(value.error());
        }
        *field_of(form, name) = trim(value->value_or(""), kSpaces);
    }
    return form;
}

Task<Result<Form>> read_form(Call& call) {
    auto body = co_await call.exchange.read_body(kBodyBytesMax);
    co_return body ? parse_form(call, *body) : fail(std::move(body.error()));
}

net::Response never_stored(net::Response response) {
    response.headers.set("Cache-Control", "no-store");
    return response;
}

Error foreign_page() {
    return Error(
        Code::forbidden, "only a page of this server may do this: open /login at its public address"
    );
}

// Who filled in the form may do so again, and goes where they wanted to.
Task<> refuse(Call& call, const LoginServices& services, Form form, Error error) {
    Page page = page_of(services, error);
    page.next = own_path(form.next);
    co_await send(call, form.is_of_page ? show(page) : never_stored(encode_error(error)));
}

Task<> show_page(Call& call, const LoginServices& services) {
    Page page;
    page.next = own_path(call.query_value("next"));
    page.provider = services.provider != nullptr ? services.provider->issuer() : "";
    const std::string cookie =
        services.sessions->cookies().read(call.request.headers, Purpose::session);
    if (!services.is_needed) {
        page.message = "This server asks nobody who they are: there is nothing to log in to.";
    } else if (!cookie.empty()) {
        auto found = co_await services.sessions->find(cookie);
        if (found) {
            page.who = found->caller.key_name + " of " + found->caller.tenant;
            page.page_token = auth::Sessions::page_token(cookie);
        }
    }
    co_await send(call, show(page));
}

Task<> show_style(Call& call, const LoginServices&) {
    return send(call, style());
}

Task<Result<net::Response>> describe_session(const LoginServices& services, std::string cookie) {
    auto found = co_await services.sessions->find(cookie);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    json::object body = encode(found->session);
    json::array scopes;
    for (const std::string_view word : words_of(found->caller.scopes)) {
        scopes.emplace_back(word);
    }
    body["scopes"] = std::move(scopes);
    body["csrf_token"] = auth::Sessions::page_token(cookie);
    co_return never_stored(json_response(200, body));
}

// Wrong keys cost the same waits here as with any other request.
Task<Result<auth::Sessions::Opened>> open_session(
    const Call& call, const LoginServices& services, std::string key
) {
    const std::string credential = "Bearer " + key;
    if (services.addresses != nullptr) {
        auto checked = services.addresses->check(call.request.peer, credential);
        if (!checked) {
            co_return fail(std::move(checked.error()));
        }
    }
    auto opened = co_await services.sessions->open_by_key(std::move(key), origin_of(call));
    if (services.addresses != nullptr && opened) {
        services.addresses->welcome(call.request.peer, credential);
    } else if (services.addresses != nullptr && opened.error().code == Code::unauthorized) {
        services.addresses->turn_away(call.request.peer, credential);
    }
    co_return opened;
}

// A new session, whatever the browser showed before; that one ends.
Task<> log_in(Call& call, const LoginServices& services) {
    auto form = co_await read_form(call);
    if (!form) {
        co_await refuse(call, services, Form(), std::move(form.error()));
        co_return;
    }
    const auth::SessionCookies& cookies = services.sessions->cookies();
    if (!cookies.is_own_page(call.request)) {
        co_await refuse(call, services, *form, foreign_page());
        co_return;
    }
    if (!services.is_needed) {
        Error error(Code::conflict, "this server asks for no keys: there is nothing to log in to");
        co_await refuse(call, services, *form, std::move(error));
        co_return;
    }
    auto opened = co_await open_session(call, services, form->key);
    if (!opened) {
        log::warning("a login by key failed", {{"address", call.request.peer}});
        co_await refuse(call, services, *form, std::move(opened.error()));
        co_return;
    }
    auto before =
        co_await services.sessions->close(cookies.read(call.request.headers, Purpose::session));
    static_cast<void>(before);
    log::info("login", {{"tenant", opened->caller.tenant}, {"name", opened->caller.key_name}});
    auto described = co_await describe_session(services, opened->token);
    if (!described) {
        co_await refuse(call, services, *form, std::move(described.error()));
        co_return;
    }
    net::Response response =
        form->is_of_page ? see_other(own_path(form->next)) : std::move(*described);
    response.headers.add("Set-Cookie", cookies.keep_session(opened->token));
    co_await send(call, std::move(response));
}

net::Response logged_out(const LoginServices& services, const Form& form, std::string leave_at) {
    net::Response response;
    if (form.is_of_page) {
        Page page;
        page.message = "You are logged out.";
        page.provider = services.provider != nullptr ? services.provider->issuer() : "";
        page.leave_at = std::move(leave_at);
        response = show(page);
    } else {
        json::object body{{"end_session_url", nullptr}};
        if (!leave_at.empty()) {
            body["end_session_url"] = std::move(leave_at);
        }
        response = never_stored(json_response(200, body));
    }
    response.headers.add("Set-Cookie", services.sessions->cookies().forget(Purpose::session));
    return response;
}

Task<> log_out(Call& call, const LoginServices& services) {
    auto form = co_await read_form(call);
    if (!form) {
        co_await refuse(call, services, Form(), std::move(form.error()));
        co_return;
    }
    const auth::SessionCookies& cookies = services.sessions->cookies();
    const std::string cookie = cookies.read(call.request.headers, Purpose::session);
    const std::string_view header = call.request.headers.get("X-CSRF-Token");
    const bool is_wanted = equal_constant_time(
        header.empty() ? std::string_view(form->page_token) : header,
        auth::Sessions::page_token(cookie)
    );
    if (!cookies.is_own_page(call.request) || (!cookie.empty() && !is_wanted)) {
        co_await refuse(call, services, *form, foreign_page());
        co_return;
    }
    auto id_token = co_await services.sessions->close(cookie);
    if (!id_token) {
        co_await refuse(call, services, *form, std::move(id_token.error()));
        co_return;
    }
    std::string leave_at;
    if (services.provider != nullptr && !id_token->empty()) {
        leave_at = co_await services.provider->logout_address(std::move(*id_token));
    }
    co_await send(call, logged_out(services, *form, std::move(leave_at)));
}

Task<> show_session(Call& call, const LoginServices& services) {
    std::string cookie = services.sessions->cookies().read(call.request.headers, Purpose::session);
    auto described = co_await describe_session(services, std::move(cookie));
    co_await send(
        call, described ? std::move(*described) : never_stored(encode_error(described.error()))
    );
}

}  // namespace

void add_route(
    Router& router,
    const LoginServices& services,
    Place place,
    Function function,
    json::object operation
) {
    Route route;
    route.method = place.method;
    route.pattern = place.pattern;
    route.handler = [function, &services](Call& call) {
        if (services.sessions == nullptr) {
            return send(
                call,
                encode_error(Error(
                    Code::forbidden,
                    "browsers log in by https alone: set tls.certificate, or a public_url of "
                    "https behind a proxy"
                ))
            );
        }
        return function(call, services);
    };
    route.encode_error = encode_error;
    route.access = place.access;
    route.operation = std::move(operation);
    router.add(std::move(route));
}

Origin origin_of(const Call& call) {
    return {call.request.peer, std::string(call.request.headers.get("User-Agent"))};
}

std::string own_path(std::string_view wanted) {
    const bool is_path =
        wanted.size() <= kPathBytesMax && wanted.starts_with('/') && !wanted.starts_with("//") &&
        std::ranges::all_of(wanted, [](char c) { return c > ' ' && c <= '~' && c != '\\'; });
    return is_path ? std::string(wanted) : "/";
}

net::Response see_other(const std::string& address) {
    net::Response response;
    response.status = 303;
    response.headers.set("Location", address);
    return never_stored(std::move(response));
}

}  // namespace login

void add_login(Router& router, const LoginServices& services) {
    using login::add_route;
    using net::Method;
    add_route(router, services, {Method::get, "/login"}, login::show_page, {});
    add_route(router, services, {Method::get, "/login/style.css"}, login::show_style, {});
    add_route(router, services, {Method::post, "/login"}, login::log_in, login::operation_login());
    add_route(
        router, services, {Method::post, "/logout"}, login::log_out, login::operation_logout()
    );
    add_route(
        router,
        services,
        {Method::get, "/login/session"},
        login::show_session,
        login::operation_session()
    );
    login::add_provider(router, services);
    login::add_sessions(router, services);
    router.add_schemas(login::schemas());
}

}  // namespace comfyd::api
