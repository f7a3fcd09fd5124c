// Deliveries: what became of them, and what to do with dead letters.
#include <algorithm>
#include <charconv>
#include <utility>

#include "api/dialects/webhooks/webhooks.hpp"
#include "api/wrong_field.hpp"

namespace comfyd::api::webhooks {
namespace {

constexpr int kLimitDefault = 50;
constexpr int kLimitMax = 200;
constexpr int kDeadAtOnce = 500;
constexpr int kCountedMax = 10'000;

// The caller's tenant, or all of them for an operator who asks for it.
Result<std::optional<std::string>> wanted_tenant(const Call& call) {
    if (call.query_value("all_tenants") != "true") {
        return std::optional(call.caller.tenant);
    }
    if (!call.caller.may(auth::Scope::admin)) {
        return fail(Code::forbidden, "'all_tenants' is for operators");
    }
    return std::nullopt;
}

Result<int> decode_limit(std::string_view text) {
    int limit = kLimitDefault;
    if (!text.empty()) {
        const auto read = std::from_chars(text.data(), text.data() + text.size(), limit);
        if (read.ec != std::errc() || read.ptr != text.data() + text.size() || limit < 1 ||
            limit > kLimitMax) {
            return fail(
                Code::invalid_argument,
                "'limit' must be from 1 to " + std::to_string(kLimitMax),
                {{"field", "limit"}}
            );
        }
    }
    return limit;
}

template <class T>
Result<std::optional<T>> decode_query(
    const Call& call, const char* field, std::optional<T> (*parse)(std::string_view)
) {
    const std::string_view text = call.query_value(field);
    if (text.empty()) {
        return std::nullopt;
    }
    auto parsed = parse(text);
    if (!parsed) {
        return fail(
            Code::invalid_argument, "'" + std::string(field) + "' is not one", {{"field", field}}
        );
    }
    return parsed;
}

Result<notify::DeliveryQuery> decode(const Call& call) {
    auto tenant = wanted_tenant(call);
    const auto limit = decode_limit(call.query_value("limit"));
    const auto state = decode_query(call, "state", notify::parse_delivery_state);
    const auto job = decode_query(call, "execution_id", JobId::parse);
    auto cursor = decode_query(call, "cursor", notify::DeliveryKey::parse);
    for (const Error* error : std::initializer_list<const Error*>{
             tenant ? nullptr : &tenant.error(),
             limit ? nullptr : &limit.error(),
             state ? nullptr : &state.error(),
             job ? nullptr : &job.error(),
             cursor ? nullptr : &cursor.error()
         }) {
        if (error != nullptr) {
            return fail(*error);
        }
    }
    notify::DeliveryQuery query;
    query.tenant = std::move(*tenant);
    query.limit = *limit;
    query.state = *state;
    query.job = *job;
    query.cursor = std::move(*cursor);
    if (const std::string_view receiver = call.query_value("receiver"); !receiver.empty()) {
        query.endpoint = decode_receiver(std::string(receiver));
    }
    return query;
}

Task<> list(Call& call, const Services& services) {
    auto query = decode(call);
    if (!query) {
        co_await refuse(call, services, std::move(query.error()));
        co_return;
    }
    auto page = co_await services.webhooks->deliveries.list_deliveries(std::move(*query));
    if (!page) {
        co_await refuse(call, services, std::move(page.error()));
        co_return;
    }
    json::array listed;
    for (const notify::DeliveryView& view : page->deliveries) {
        listed.emplace_back(encode_delivery(view, services.webhooks->endpoints));
    }
    json::object body{{"count", listed.size()}, {"deliveries", std::move(listed)}};
    body["next_cursor"] =
        page->next_cursor ? json::value(page->next_cursor->to_string()) : json::value(nullptr);
    co_await answer(call, json_response(200, body));
}

// What the path names, if it is the caller's.
Task<Result<notify::DeliveryView>> find_named(const Call& call, const Services& services) {
    const std::string text = call.path_parameters.front();
    const auto key = notify::DeliveryKey::parse(text);
    std::optional<notify::DeliveryView> view;
    if (key) {
        auto found = co_await services.webhooks->deliveries.find_delivery(*key);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        view = std::move(*found);
    }
    const bool is_theirs =
        view && (view->tenant == call.caller.tenant || call.caller.may(auth::Scope::admin));
    if (!is_theirs) {
        co_return fail(Code::not_found, "there is no delivery '" + text.substr(0, 128) + "'");
    }
    co_return std::move(*view);
}

Task<> get(Call& call, const Services& services) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await refuse(call, services, std::move(found.error()));
        co_return;
    }
    json::object body = encode_delivery(*found, services.webhooks->endpoints);
    body["request"] = nullptr;
    // What a job has made is its tenant's to read, and no operator's.
    if (found->tenant == call.caller.tenant) {
        auto letter = co_await services.webhooks->notifier.show(found->delivery);
        if (!letter) {
            co_await refuse(call, services, std::move(letter.error()));
            co_return;
        }
        if (*letter) {
            body["request"] = encode_letter(**letter);
        }
    }
    co_await answer(call, json_response(200, body));
}

enum class Fate { replayed, purged };

const char* name_of(Fate fate) {
    return fate == Fate::replayed ? "replayed" : "purged";
}

// Of those that match, all; in steps, so that none is long.
Task<Result<int>> dispose(const Services& services, notify::DeadFilter filter, Fate fate) {
    int all = 0;
    for (int done = kDeadAtOnce; done == kDeadAtOnce;) {
        auto step = fate == Fate::replayed
                        ? services.webhooks->deliveries.replay_dead(
                              filter, services.clock.now(), kDeadAtOnce
                          )
                        : services.webhooks->deliveries.purge_dead(filter, kDeadAtOnce);
        auto counted = co_await std::move(step);
        if (!counted) {
            co_return fail(std::move(counted.error()));
        }
        done = *counted;
        all += done;
        if (filter.one) {
            break;
        }
    }
    if (fate == Fate::replayed) {
        services.webhooks->notifier.wake();
    }
    co_return all;
}

Task<> dispose_one(Call& call, const Services& services, Fate fate) {
    auto found = co_await find_named(call, services);
    if (!found) {
        co_await refuse(call, services, std::move(found.error()));
        co_return;
    }
    notify::DeadFilter filter;
    filter.one = found->key();
    auto done = co_await dispose(services, std::move(filter), fate);
    if (done && *done == 0) {
        done = fail(Code::conflict, "the delivery was not given up: there is nothing to do");
    }
    if (!done) {
        co_await refuse(call, services, std::move(done.error()));
        co_return;
    }
    net::Response response;
    if (fate == Fate::replayed) {
        response = json_response(202, json::object{{"replayed", *done}});
    } else {
        response.status = 204;
    }
    co_await answer(call, std::move(response));
}

struct Wish {
    notify::DeadFilter filter;
    bool only_counts = false;
};

Result<Wish> decode_wish(const Call& call, const json::object& members) {
    Wish wish;
    auto tenant = wanted_tenant(call);
    if (!tenant) {
        return fail(std::move(tenant.error()));
    }
    wish.filter.tenant = std::move(*tenant);
    const auto receiver = json::find_string(members, "receiver");
    const auto job = json::find_string(members, "execution_id");
    const auto only_counts = json::find_bool(members, "dry_run");
    if (!receiver || !job || !only_counts) {
        return fail(!receiver ? receiver.error() : !job ? job.error() : only_counts.error());
    }
    if (*receiver) {
        wish.filter.endpoint = decode_receiver(**receiver);
    }
    if (*job) {
        wish.filter.job = JobId::parse(**job);
        if (!wish.filter.job) {
            return wrong("execution_id", "'execution_id' is not one");
        }
    }
    wish.only_counts = only_counts->value_or(false);
    return wish;
}

// Nothing is done, and so the answer says.
Task<> only_count(Call& call, const Services& services, notify::DeadFilter filter, Fate fate) {
    auto counted =
        co_await services.webhooks->deliveries.count_dead(std::move(filter), kCountedMax + 1);
    if (!counted) {
        co_await refuse(call, services, std::move(counted.error()));
        co_return;
    }
    const json::object body{
        {name_of(fate), 0},
        {"matching", std::min(*counted, kCountedMax)},
        {"more", *counted > kCountedMax},
    };
    co_await answer(call, json_response(200, body));
}

Task<> dispose_all(Call& call, const Services& services, Fate fate) {
    auto members = co_await read_members(call);
    auto wish = members ? decode_wish(call, *members) : fail(std::move(members.error()));
    if (!wish) {
        co_await refuse(call, services, std::move(wish.error()));
        co_return;
    }
    if (wish->only_counts) {
        co_await only_count(call, services, std::move(wish->filter), fate);
        co_return;
    }
    auto done = co_await dispose(services, std::move(wish->filter), fate);
    if (!done) {
        co_await refuse(call, services, std::move(done.error()));
        co_return;
    }
    co_await answer(call, json_response(200, json::object{{name_of(fate), *done}}));
}

Task<> replay_one(Call& call, const Services& services) {
    return dispose_one(call, services, Fate::replayed);
}
Task<> purge_one(Call& call, const Services& services) {
    return dispose_one(call, services, Fate::purged);
}
Task<> replay_all(Call& call, const Services& services) {
    return dispose_all(call, services, Fate::replayed);
}
Task<> purge_all(Call& call, const Services& services) {
    return dispose_all(call, services, Fate::purged);
}

}  // namespace

void add_deliveries(Router& router, const Services& services) {
    using net::Method;
    constexpr const char* kOne = "/v2/webhooks/deliveries/{id}";
    const auto add = [&](Method method, const char* pattern, auto handle, json::object operation) {
        add_route(
            router,
            services,
            method,
            pattern,
            [handle, &services](Call& call) { return handle(call, services); },
            std::move(operation)
        );
    };
    add(Method::get, "/v2/webhooks/deliveries", list, operation_list_deliveries());
    add(Method::post, "/v2/webhooks/deliveries/replay", replay_all, operation_replay_all());
    add(Method::post, "/v2/webhooks/deliveries/purge", purge_all, operation_purge_all());
    add(Method::get, kOne, get, operation_get_delivery());
    add(Method::del, kOne, purge_one, operation_delete_delivery());
    add(Method::post, "/v2/webhooks/deliveries/{id}/replay", replay_one, operation_replay_delivery()
    );
}

}  // namespace comfyd::api::webhooks
