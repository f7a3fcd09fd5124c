// Tenants: those of the configuration are shown, those of the ledger may be changed.
#include <utility>

#include "api/dialects/identity/identity.hpp"

namespace comfyd::api::identity {
namespace {

using auth::Tenant;

json::object encode(const Tenant& tenant) {
    json::object body{
        {"name", tenant.name},
        {"source", tenant.revision == 0 ? "configuration" : "ledger"},
        {"revision", tenant.revision},
    };
    for (auto& member : tenant.about()) {
        body[member.key()] = std::move(member.value());
    }
    return body;
}

Task<Result<Tenant>> find_named(const Call& call, const IdentityServices& services) {
    const std::string name = call.path_parameters.front();
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_return fail(std::move(refreshed.error()));
    }
    const auto directory = services.book.directory().now();
    const Tenant* found = directory->find_tenant(name);
    if (found == nullptr) {
        co_return fail(Code::not_found, "there is no tenant '" + name.substr(0, 64) + "'");
    }
    co_return *found;
}

// Stores it and answers with what is known then.
Task<> save(Call& call, const IdentityServices& services, Tenant tenant, int status) {
    if (auto checked = services.check_tenant(tenant); !checked) {
        co_await send(call, encode_error(checked.error()));
        co_return;
    }
    const std::string name = tenant.name;
    auto saved = co_await services.book.save(std::move(tenant));
    if (!saved) {
        co_await send(call, encode_error(saved.error()));
        co_return;
    }
    const auto directory = services.book.directory().now();
    const Tenant* found = directory->find_tenant(name);
    if (found == nullptr) {
        co_await send(
            call, encode_error(Error(Code::not_found, "the tenant was removed meanwhile"))
        );
        co_return;
    }
    net::Response response = json_response(status, encode(*found));
    if (status == 201) {
        response.headers.set("Location", "/admin/v1/tenants/" + net::percent_encode(name));
    }
    co_await send(call, std::move(response));
}

Task<> list(Call& call, const IdentityServices& services) {
    const auto page = read_page(call);
    if (!page) {
        co_await send(call, encode_error(page.error()));
        co_return;
    }
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_await send(call, encode_error(refreshed.error()));
        co_return;
    }
    const auto directory = services.book.directory().now();
    json::array listed;
    std::string last;
    auto next = directory->tenants().upper_bound(page->after);
    for (; next != directory->tenants().end() && listed.size() < page->limit; ++next) {
        listed.emplace_back(encode(next->second));
        last = next->first;
    }
    const bool is_all = next == directory->tenants().end();
    json::object body{{"tenants", std::move(listed)}};
    body["next_cursor"] = is_all ? json::value(nullptr) : json::value(last);
    co_await send(call, json_response(200, body));
}

Result<Tenant> made_of(json::object members) {
    auto name = json::find_string(members, "name");
    if (!name) {
        return fail(std::move(name.error()));
    }
    members.erase("name");
    Tenant tenant;
    tenant.name = name->value_or("");
    if (!auth::is_tenant_name(tenant.name)) {
        return fail(
            Code::invalid_argument,
            "'name' must be 1 to 128 bytes without control characters",
            {{"field", "name"}}
        );
    }
    return tenant.with(members);
}

Task<> create(Call& call, const IdentityServices& services) {
    auto members = co_await read_members(call);
    auto tenant = members ? made_of(std::move(*members)) : fail(std::move(members.error()));
    if (!tenant) {
        co_await send(call, encode_error(tenant.error()));
        co_return;
    }
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_await send(call, encode_error(refreshed.error()));
        co_return;
    }
    if (services.book.directory().now()->find_tenant(tenant->name) != nullptr) {
        co_await send(
            call,
            encode_error(Error(Code::conflict, "there is a tenant '" + tenant->name + "' already"))
        );
        co_return;
    }
    call.has_made(tenant->name);
    co_await save(call, services, std::move(*tenant), 201);
}

Task<> get(Call& call, const IdentityServices& services) {
    auto found = co_await find_named(call, services);
    co_await send(call, found ? json_response(200, encode(*found)) : encode_error(found.error()));
}

Task<> change(Call& call, const IdentityServices& services) {
    auto members = co_await read_members(call);
    if (!members) {
        co_await send(call, encode_error(members.error()));
        co_return;
    }
    auto found = co_await find_named(call, services);
    auto changed = found ? found->with(*members) : fail(std::move(found.error()));
    if (!changed) {
        co_await send(call, encode_error(changed.error()));
        co_return;
    }
    co_await save(call, services, std::move(*changed), 200);
}

// Its jobs and files stay, and whoever has a token of its name is let in.
Result<> may_be_removed(const Tenant& tenant, const IdentityServices& services) {
    if (tenant.revision == 0) {
        return fail(
            Code::conflict, "the tenant is set in the configuration of the server; remove it there"
        );
    }
    const auto directory = services.book.directory().now();
    for (const auto& [id, key] : directory->keys()) {
        if (key.record.tenant == tenant.name && key.record.is_live(services.clock.now())) {
            return fail(
                Code::conflict,
                "the tenant has keys that are good, such as " + id +
                    "; revoke them first, or disable the tenant"
            );
        }
    }
    return {};
}

Task<> remove(Call& call, const IdentityServices& services) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    if (auto checked = may_be_removed(*found, services); !checked) {
        co_await send(call, encode_error(checked.error()));
        co_return;
    }
    auto removed = co_await services.book.remove_tenant(found->name);
    if (!removed) {
        co_await send(call, encode_error(removed.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await send(call, std::move(response));
}

}  // namespace

void add_tenants(Router& router, const IdentityServices& services) {
    using net::Method;
    constexpr const char* kAll = "/admin/v1/tenants";
    constexpr const char* kOne = "/admin/v1/tenants/{name}";
    add_route(router, services, Method::get, kAll, list, operation_list_tenants());
    add_route(router, services, Method::post, kAll, create, operation_create_tenant());
    add_route(router, services, Method::get, kOne, get, operation_get_tenant());
    add_route(router, services, Method::patch, kOne, change, operation_change_tenant());
    add_route(router, services, Method::del, kOne, remove, operation_delete_tenant());
}

}  // namespace comfyd::api::identity
