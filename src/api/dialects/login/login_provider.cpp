// The two halves of a login by an OpenID provider, between which the browser is there.
#include "api/dialects/login/login.hpp"
#include "base/log.hpp"

namespace comfyd::api::login {
namespace {

Error no_provider() {
    return Error(Code::not_found, "this server has no login provider (login.issuer): use a key");
}

Task<> begin(Call& call, const LoginServices& services) {
    if (services.provider == nullptr) {
        co_await send(call, show(page_of(services, no_provider())));
        co_return;
    }
    auto begun = co_await services.provider->begin(own_path(call.query_value("next")));
    if (!begun) {
        co_await send(call, show(page_of(services, begun.error())));
        co_return;
    }
    net::Response response = see_other(begun->address);
    response.headers.add(
        "Set-Cookie",
        services.sessions->cookies().keep_login(begun->secret, auth::oidc::CodeFlow::kPatience)
    );
    co_await send(call, std::move(response));
}

Task<Result<net::Response>> let_in(Call& call, const LoginServices& services) {
    const auth::SessionCookies& cookies = services.sessions->cookies();
    auth::oidc::CodeFlow::Answer answer{
        std::string(call.query_value("code")),
        std::string(call.query_value("state")),
        std::string(call.query_value("iss")),
        std::string(call.query_value("error")),
    };
    auto person = co_await services.provider->finish(
        std::move(answer), cookies.read(call.request.headers, Purpose::login)
    );
    if (!person) {
        co_return fail(std::move(person.error()));
    }
    auto opened = co_await services.sessions->open_by_issuer(
        std::move(person->caller), std::move(person->id_token), origin_of(call)
    );
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    auto before =
        co_await services.sessions->close(cookies.read(call.request.headers, Purpose::session));
    static_cast<void>(before);
    log::info("login", {{"tenant", opened->caller.tenant}, {"name", opened->caller.key_name}});
    net::Response response = see_other(own_path(person->next));
    response.headers.add("Set-Cookie", cookies.keep_session(opened->token));
    response.headers.add("Set-Cookie", cookies.forget(Purpose::login));
    co_return response;
}

Task<> finish(Call& call, const LoginServices& services) {
    if (services.provider == nullptr) {
        co_await send(call, show(page_of(services, no_provider())));
        co_return;
    }
    auto response = co_await let_in(call, services);
    if (!response) {
        log::warning(
            "a login by the provider failed",
            {{"address", call.request.peer}, {"error", response.error().message}}
        );
    }
    co_await send(
        call, response ? std::move(*response) : show(page_of(services, response.error()))
    );
}

}  // namespace

void add_provider(Router& router, const LoginServices& services) {
    add_route(router, services, {net::Method::get, "/login/oidc"}, begin, {});
    add_route(router, services, {net::Method::get, "/login/callback"}, finish, {});
}

}  // namespace comfyd::api::login
