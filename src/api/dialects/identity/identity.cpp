#include "api/dialects/identity/identity.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace comfyd::api {
namespace identity {
namespace {

constexpr std::uint64_t kBodyBytesMax = 1024 * 1024;
constexpr std::size_t kPageMax = 1000;

}  // namespace

void add_route(
    Router& router,
    const IdentityServices& services,
    net::Method method,
    const char* pattern,
    Function function,
    json::object operation
) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    route.handler = [function, &services](Call& call) { return function(call, services); };
    route.encode_error = encode_error;
    route.access = Access::admin;
    route.operation = std::move(operation);
    router.add(std::move(route));
}

Task<Result<json::object>> read_members(Call& call) {
    auto text = co_await call.exchange.read_body(kBodyBytesMax);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    if (trim(*text, " \t\r\n").empty()) {
        co_return json::object();
    }
    co_return json::parse_object(*text);
}

Result<> check_names(const json::object& members, std::initializer_list<std::string_view> known) {
    for (const auto& member : members) {
        const std::string_view name = view(member.key());
        if (std::ranges::find(known, name) == known.end()) {
            std::string all;
            for (const std::string_view one : known) {
                all += (all.empty() ? "'" : ", '") + std::string(one) + "'";
            }
            return fail(
                Code::invalid_argument,
                "there is " + all + " here, and no '" + std::string(name).substr(0, 64) + "'",
                {{"field", member.key()}}
            );
        }
    }
    return {};
}

Result<Page> read_page(const Call& call) {
    Page page{std::string(call.query_value("cursor")), kPageMax};
    const std::string_view text = call.query_value("limit");
    if (!text.empty()) {
        const auto read = std::from_chars(text.data(), text.data() + text.size(), page.limit);
        if (read.ec != std::errc() || read.ptr != text.data() + text.size() || page.limit < 1 ||
            page.limit > kPageMax) {
            return fail(
                Code::invalid_argument, "'limit' must be from 1 to 1000", {{"field", "limit"}}
            );
        }
    }
    return page;
}

}  // namespace identity

void add_identity(Router& router, const IdentityServices& services) {
    identity::add_tenants(router, services);
    identity::add_keys(router, services);
    router.add_schemas(identity::schemas());
}

}  // namespace comfyd::api
