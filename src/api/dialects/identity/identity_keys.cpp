// API keys. Only the answer that makes one shows it.
#include <algorithm>
#include <chrono>
#include <utility>

#include "api/dialects/identity/identity.hpp"
#include "auth/api_key.hpp"
#include "base/text.hpp"

namespace comfyd::api::identity {
namespace {

using auth::Directory;
using auth::KeyRecord;

constexpr std::size_t kNameBytesMax = 128;
constexpr double kDaysMax = 3650;
constexpr double kOldKeyHoursMax = 24 * 30;
constexpr double kRateMax = 1e9;

json::value or_null(const std::optional<Time>& time) {
    return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

json::value rate_or_null(double requests_per_minute) {
    return requests_per_minute > 0 ? json::value(requests_per_minute) : json::value(nullptr);
}

json::array encode(auth::Scopes scopes) {
    json::array words;
    for (const std::string_view word : words_of(scopes)) {
        words.emplace_back(word);
    }
    return words;
}

// The later of what the ledger has and what this node has seen.
std::optional<Time> last_used(const Directory::Key& key) {
    const Time here(std::chrono::seconds(key.use->load(std::memory_order_relaxed)));
    const Time latest = std::max(here, key.last_used_at.value_or(Time()));
    return latest == Time() ? std::nullopt : std::optional(latest);
}

json::object encode(const Directory::Key& key, Time now) {
    const KeyRecord& record = key.record;
    json::object body{
        {"id", record.id},
        {"name", record.name},
        {"tenant", record.tenant},
        {"scopes", encode(record.scopes)},
        {"source", "ledger"},
        {"status",
         record.revoked_at      ? "revoked"
         : !record.is_live(now) ? "expired"
                                : "live"},
        {"created_at", to_rfc3339(record.created_at)},
        {"expires_at", or_null(record.expires_at)},
        {"revoked_at", or_null(record.revoked_at)},
        {"last_used_at", or_null(last_used(key))},
    };
    const bool is_rotating = record.previous_until && now < *record.previous_until;
    body["old_key_until"] = or_null(is_rotating ? record.previous_until : std::nullopt);
    body["requests_per_minute"] = rate_or_null(record.requests_per_minute);
    return body;
}

json::object encode(const auth::ApiKey& key) {
    return {
        {"id", nullptr},
        {"name", key.name},
        {"tenant", key.tenant},
        {"scopes", encode(key.is_operator ? auth::kAllScopes : auth::kTenantScopes)},
        {"source", "configuration"},
        {"status", "live"},
        {"created_at", nullptr},
        {"expires_at", nullptr},
        {"revoked_at", nullptr},
        {"last_used_at", nullptr},
        {"old_key_until", nullptr},
        {"requests_per_minute", rate_or_null(key.requests_per_minute)},
    };
}

Task<Result<KeyRecord>> find_named(const Call& call, const IdentityServices& services) {
    const std::string id = call.path_parameters.front();
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_return fail(std::move(refreshed.error()));
    }
    const auto directory = services.book.directory().now();
    const Directory::Key* found = directory->find_key(id);
    if (found == nullptr) {
        co_return fail(
            Code::not_found,
            "there is no key with the id '" + id.substr(0, 64) +
                "'; those of the configuration have none and are changed there"
        );
    }
    co_return found->record;
}

// Stores it and answers with what is known then; with `text`, which is the key itself.
Task<> save(
    Call& call, const IdentityServices& services, KeyRecord record, int status, std::string text
) {
    const std::string id = record.id;
    auto saved = co_await services.book.save(std::move(record));
    if (!saved) {
        co_await send(call, encode_error(saved.error()));
        co_return;
    }
    const auto directory = services.book.directory().now();
    const Directory::Key* found = directory->find_key(id);
    if (found == nullptr) {
        co_await send(call, encode_error(Error(Code::not_found, "the key was removed meanwhile")));
        co_return;
    }
    json::object body = encode(*found, services.clock.now());
    if (!text.empty()) {
        body["key"] = std::move(text);
        body["enforced"] = services.are_asked_for;
    }
    net::Response response = json_response(status, body);
    response.headers.set("Cache-Control", "no-store");
    if (status == 201) {
        response.headers.set("Location", "/admin/v1/keys/" + id);
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
    const std::string tenant(call.query_value("tenant"));
    const auto is_wanted = [&tenant](const std::string& of) {
        return tenant.empty() || of == tenant;
    };
    const auto directory = services.book.directory().now();
    json::array listed;
    if (page->after.empty()) {
        for (const auth::ApiKey& key : directory->configured_keys()) {
            if (is_wanted(key.tenant)) {
                listed.emplace_back(encode(key));
            }
        }
    }
    const std::size_t configured = listed.size();
    std::string last;
    auto next = directory->keys().upper_bound(page->after);
    for (; next != directory->keys().end() && listed.size() - configured < page->limit; ++next) {
        if (is_wanted(next->second.record.tenant)) {
            listed.emplace_back(encode(next->second, services.clock.now()));
        }
        last = next->first;
    }
    const bool is_all = next == directory->keys().end();
    json::object body{{"keys", std::move(listed)}, {"enforced", services.are_asked_for}};
    body["next_cursor"] = is_all ? json::value(nullptr) : json::value(last);
    co_await send(call, json_response(200, body));
}

Result<auth::Scopes> decode_scopes(const json::object& members) {
    const auto list = json::find_array(members, "scopes");
    if (!list) {
        return fail(list.error());
    }
    if (*list == nullptr) {
        return auth::kTenantScopes;
    }
    auth::Scopes scopes;
    for (const json::value& word : **list) {
        const auto known =
            word.is_string() ? auth::parse_scopes(view(word.get_string())) : std::nullopt;
        if (!known) {
            return fail(
                Code::invalid_argument,
                "'scopes' is a list of jobs:read, jobs:write, assets:read, assets:write, "
                "workflows:read, workflows:write, metrics:read and admin; jobs:* stands for both, "
                "* for all of a tenant",
                {{"field", "scopes"}}
            );
        }
        scopes.add(*known);
    }
    return scopes;
}

Result<std::optional<Time>> decode_expiry(const json::object& members, Time now) {
    const auto at = json::find_string(members, "expires_at");
    const auto days = json::find_number(members, "expires_in_days");
    if (!at || !days) {
        return fail(at ? days.error() : at.error());
    }
    if (*at) {
        const auto time = parse_rfc3339(**at);
        if (!time || *time <= now || *days) {
            return fail(
                Code::invalid_argument,
                "'expires_at' is a time to come such as 2030-01-31T12:00:00Z, without "
                "'expires_in_days'",
                {{"field", "expires_at"}}
            );
        }
        return time;
    }
    if (!*days) {
        return std::nullopt;
    }
    if (!(**days > 0 && **days <= kDaysMax)) {
        return fail(
            Code::invalid_argument,
            "'expires_in_days' is above 0 and at most 3650",
            {{"field", "expires_in_days"}}
        );
    }
    using Days = std::chrono::duration<double, std::ratio<86'400>>;
    return now + std::chrono::round<Millis>(Days(**days));
}

Result<KeyRecord> made_of(const json::object& members, Time now) {
    if (auto checked = check_names(
            members,
            {"name", "tenant", "scopes", "expires_at", "expires_in_days", "requests_per_minute"}
        );
        !checked) {
        return fail(std::move(checked.error()));
    }
    const auto name = json::find_string(members, "name");
    const auto tenant = json::find_string(members, "tenant");
    if (!name || !tenant) {
        return fail(name ? tenant.error() : name.error());
    }
    KeyRecord key;
    key.name = name->value_or("");
    key.tenant = tenant->value_or(key.name);
    if (!auth::is_tenant_name(key.name) || key.name.size() > kNameBytesMax) {
        return fail(
            Code::invalid_argument,
            "'name' must be 1 to 128 bytes without control characters",
            {{"field", "name"}}
        );
    }
    if (!auth::is_tenant_name(key.tenant)) {
        return fail(
            Code::invalid_argument,
            "'tenant' must be 1 to 128 bytes without control characters",
            {{"field", "tenant"}}
        );
    }
    const auto scopes = decode_scopes(members);
    if (!scopes) {
        return fail(scopes.error());
    }
    const auto expires = decode_expiry(members, now);
    if (!expires) {
        return fail(expires.error());
    }
    const auto rate = json::find_number(members, "requests_per_minute");
    if (!rate) {
        return fail(rate.error());
    }
    if (*rate && !(**rate > 0 && **rate <= kRateMax)) {
        return fail(
            Code::invalid_argument,
            "'requests_per_minute' is above 0; without it the key may what its tenant may",
            {{"field", "requests_per_minute"}}
        );
    }
    key.requests_per_minute = rate->value_or(0);
    key.scopes = *scopes;
    key.expires_at = *expires;
    key.created_at = now;
    return key;
}

Task<> create(Call& call, const IdentityServices& services) {
    auto members = co_await read_members(call);
    auto key = members ? made_of(*members, services.clock.now()) : fail(std::move(members.error()));
    if (!key) {
        co_await send(call, encode_error(key.error()));
        co_return;
    }
    key->id = auth::make_key_id();
    call.has_made(key->id);
    std::string text = auth::make_key(key->id);
    key->sha256 = sha256(text);
    co_await save(call, services, std::move(*key), 201, std::move(text));
}

Task<> get(Call& call, const IdentityServices& services) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    const auto directory = services.book.directory().now();
    const Directory::Key* key = directory->find_key(found->id);
    co_await send(
        call,
        key != nullptr ? json_response(200, encode(*key, services.clock.now()))
                       : encode_error(Error(Code::not_found, "the key was removed meanwhile"))
    );
}

// The new key is good at once, the one before it for a while as well.
Result<> rotate_to(KeyRecord& key, const std::string& text, const json::object& members, Time now) {
    if (auto checked = check_names(members, {"old_key_hours"}); !checked) {
        return checked;
    }
    const auto hours = json::find_number(members, "old_key_hours");
    if (!hours) {
        return fail(hours.error());
    }
    const double kept = hours->value_or(24);
    if (!(kept >= 0 && kept <= kOldKeyHoursMax)) {
        return fail(
            Code::invalid_argument,
            "'old_key_hours' must be from 0 to 720",
            {{"field", "old_key_hours"}}
        );
    }
    if (!key.is_live(now)) {
        return fail(Code::conflict, "the key was revoked or has expired; make a new one");
    }
    key.previous_sha256 = key.sha256;
    key.previous_until = now + Millis(static_cast<std::int64_t>(kept * 3'600'000));
    key.sha256 = sha256(text);
    return {};
}

Task<> rotate(Call& call, const IdentityServices& services) {
    auto members = co_await read_members(call);
    if (!members) {
        co_await send(call, encode_error(members.error()));
        co_return;
    }
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    std::string text = auth::make_key(found->id);
    if (auto done = rotate_to(*found, text, *members, services.clock.now()); !done) {
        co_await send(call, encode_error(done.error()));
        co_return;
    }
    co_await save(call, services, std::move(*found), 200, std::move(text));
}

// Once more is no failure.
Task<> revoke(Call& call, const IdentityServices& services) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    found->revoked_at = found->revoked_at.value_or(services.clock.now());
    co_await save(call, services, std::move(*found), 200, "");
}

Task<> remove(Call& call, const IdentityServices& services) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await send(call, encode_error(found.error()));
        co_return;
    }
    auto removed = co_await services.book.remove_key(found->id);
    if (!removed) {
        co_await send(call, encode_error(removed.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await send(call, std::move(response));
}

}  // namespace

void add_keys(Router& router, const IdentityServices& services) {
    using net::Method;
    constexpr const char* kAll = "/admin/v1/keys";
    constexpr const char* kOne = "/admin/v1/keys/{id}";
    add_route(router, services, Method::get, kAll, list, operation_list_keys());
    add_route(router, services, Method::post, kAll, create, operation_create_key());
    add_route(router, services, Method::get, kOne, get, operation_get_key());
    add_route(router, services, Method::del, kOne, remove, operation_delete_key());
    add_route(
        router, services, Method::post, "/admin/v1/keys/{id}/rotate", rotate, operation_rotate_key()
    );
    add_route(
        router, services, Method::post, "/admin/v1/keys/{id}/revoke", revoke, operation_revoke_key()
    );
}

}  // namespace comfyd::api::identity
