// /admin/v1/tenants and /admin/v1/keys: what operators do with identities while comfyd runs.
#pragma once

#include <functional>
#include <string>

#include "api/router.hpp"
#include "auth/identity_book.hpp"
#include "base/time.hpp"

namespace comfyd::api {

// Owned by app/identities; outlives the server.
struct IdentityServices {
    auth::IdentityBook& book;
    Clock& clock;
    bool are_asked_for = true;  // false: nobody needs a key yet
    // Whether there is what the tenant may use.
    std::function<Result<>(const auth::Tenant&)> check_tenant;
};

void add_identity(Router& router, const IdentityServices& services);

namespace identity {

void add_tenants(Router& router, const IdentityServices& services);
void add_keys(Router& router, const IdentityServices& services);

using Function = Task<> (*)(Call&, const IdentityServices&);
void add_route(
    Router& router,
    const IdentityServices& services,
    net::Method method,
    const char* pattern,
    Function function,
    json::object operation
);

// The members of the body; an empty body has none.
Task<Result<json::object>> read_members(Call& call);
// A member of another name is refused, so that a slip is not taken for the default.
Result<> check_names(const json::object& members, std::initializer_list<std::string_view> known);

// Of a list: what comes after the cursor, at most so many.
struct Page {
    std::string after;
    std::size_t limit;
};
Result<Page> read_page(const Call& call);

json::object operation_list_tenants();
json::object operation_create_tenant();
json::object operation_get_tenant();
json::object operation_change_tenant();
json::object operation_delete_tenant();
json::object operation_list_keys();
json::object operation_create_key();
json::object operation_get_key();
json::object operation_rotate_key();
json::object operation_revoke_key();
json::object operation_delete_key();
json::object schemas();

}  // namespace identity
}  // namespace comfyd::api
