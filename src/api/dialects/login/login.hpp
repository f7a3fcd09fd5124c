// /login and what belongs to it: how browsers get a session, by an API key or by the login of an
// OpenID provider, see which there are, and end them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/router.hpp"
#include "auth/oidc/code_flow.hpp"
#include "auth/sessions.hpp"

namespace comfyd::limits {
class AddressGuard;
}

namespace comfyd::api {

// Owned by app/identities; outlives the server.
struct LoginServices {
    const auth::Sessions* sessions;             // nullptr: it goes by plain HTTP to other machines
    auth::oidc::CodeFlow* provider;             // nullptr: there are keys alone
    bool is_needed = true;                      // false: nobody needs a key yet
    limits::AddressGuard* addresses = nullptr;  // nullptr: nobody is held up for wrong keys
};

void add_login(Router& router, const LoginServices& services);

namespace login {

using Function = Task<> (*)(Call&, const LoginServices&);
struct Place {
    net::Method method;
    const char* pattern;
    Access access = Access::open;
};
void add_route(
    Router& router,
    const LoginServices& services,
    Place place,
    Function function,
    json::object operation
);
void add_provider(Router& router, const LoginServices& services);
void add_sessions(Router& router, const LoginServices& services);

using Purpose = auth::SessionCookies::Purpose;
using Origin = auth::Sessions::Origin;

Origin origin_of(const Call& call);
// The path that `wanted` is; "/" where it could lead elsewhere.
std::string own_path(std::string_view wanted);
json::object encode(const auth::Session& session);

// What the page says. Any text may be in it.
struct Page {
    int status = 200;
    std::string message{};
    std::string next = "/";
    std::string provider{};  // who else logs in; empty: nobody
    std::string who{};       // is logged in; empty: nobody
    std::string page_token{};
    std::string leave_at{};  // the provider's own logout
};
net::Response show(const Page& page);
net::Response style();
Page page_of(const LoginServices& services, const Error& error);
net::Response see_other(const std::string& address);

json::object operation_login();
json::object operation_logout();
json::object operation_session();
json::object operation_list();
json::object operation_end();
json::object operation_list_all();
json::object operation_end_any();
json::object schemas();

}  // namespace login
}  // namespace comfyd::api
