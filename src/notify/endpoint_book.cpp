#include "notify/endpoint_book.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::notify {
namespace {

constexpr Millis kLookEvery{1'000};
constexpr int kDisableTries = 5;

Route route_to(const Endpoint& endpoint) {
    Route route;
    route.to = {endpoint.delivery_name(), EndpointTarget{endpoint.id}};
    route.tenant = endpoint.tenant;
    route.events = endpoint.webhook.events;
    return route;
}

}  // namespace

EndpointBook::EndpointBook(Executor executor, Clock& clock, EndpointStore& store, Routing& routing)
    : executor_(executor), clock_(clock), store_(store), routing_(routing) {}

EndpointBook::~EndpointBook() = default;

void EndpointBook::start() {
    COMFYD_ON(executor_);
    COMFYD_ASSERT(!group_);
    group_.emplace(executor_);
    group_->spawn("endpoints", keep_up());
}

Task<> EndpointBook::stop() {
    COMFYD_ON(executor_);
    if (group_) {
        group_->cancel();
        co_await group_->join();
        group_.reset();
    }
}

Task<> EndpointBook::keep_up() {
    bool go_on = true;
    bool has_failed = false;
    while (go_on) {
        auto refreshed = co_await refresh();
        if (!refreshed && !has_failed) {
            log::warning(
                "cannot read the endpoints of webhooks", {{"error", refreshed.error().message}}
            );
        }
        has_failed = !refreshed;
        go_on = co_await sleep_for(kLookEvery);
    }
}

Task<Result<>> EndpointBook::refresh() {
    auto changes = co_await store_.endpoint_changes();
    if (!changes) {
        co_return fail(std::move(changes.error()));
    }
    bool is_known = false;
    {
        const Lock lock(mutex_);
        is_known = has_read_ && known_->changes >= *changes;
    }
    if (is_known) {
        co_return Result<>();
    }
    auto read = co_await read_all();
    co_return read;
}

Task<Result<>> EndpointBook::read_all() {
    auto all = co_await store_.all_endpoints();
    if (!all) {
        co_return fail(std::move(all.error()));
    }
    auto next = std::make_shared<Known>();
    next->changes = all->changes;
    std::vector<Route> routes;
    for (Endpoint& endpoint : all->endpoints) {
        if (!endpoint.disabled) {
            routes.push_back(route_to(endpoint));
        }
        const EndpointId id = endpoint.id;
        next->endpoints[id] = std::make_shared<const Endpoint>(std::move(endpoint));
    }
    const Lock lock(mutex_);
    if (has_read_ && known_->changes > next->changes) {
        co_return Result<>();  // another has read later
    }
    has_read_ = true;
    known_ = std::move(next);
    routing_.set_endpoints(std::move(routes));
    co_return Result<>();
}

std::shared_ptr<const EndpointBook::Known> EndpointBook::known() const {
    const Lock lock(mutex_);
    return known_;
}

EndpointPtr EndpointBook::find(EndpointId id) const {
    const auto all = known();
    const auto found = all->endpoints.find(id);
    return found == all->endpoints.end() ? nullptr : found->second;
}

std::vector<EndpointPtr> EndpointBook::of_tenant(const std::string& tenant) const {
    std::vector<EndpointPtr> found;
    const auto all = known();
    for (const auto& [id, endpoint] : all->endpoints) {
        if (endpoint->tenant == tenant) {
            found.push_back(endpoint);
        }
    }
    return found;
}

std::vector<EndpointPtr> EndpointBook::of_all() const {
    std::vector<EndpointPtr> found;
    const auto all = known();
    for (const auto& [id, endpoint] : all->endpoints) {
        found.push_back(endpoint);
    }
    return found;
}

Task<Result<EndpointPtr>> EndpointBook::save(Endpoint endpoint) {
    const bool is_new = endpoint.revision == 0;
    if (is_new && of_tenant(endpoint.tenant).size() >= kEndpointsPerTenantMax) {
        co_return fail(
            Code::conflict,
            "there are " + std::to_string(kEndpointsPerTenantMax) +
                " endpoints already; remove one first"
        );
    }
    endpoint.revision += 1;
    endpoint.updated_at = clock_.now();
    const EndpointId id = endpoint.id;
    auto saved = co_await store_.save_endpoint(std::move(endpoint));
    if (!saved) {
        co_return fail(std::move(saved.error()));
    }
    auto refreshed = co_await refresh();
    if (!refreshed) {
        co_return fail(std::move(refreshed.error()));
    }
    auto found = find(id);
    if (!found) {
        co_return fail(Code::not_found, "the endpoint was removed meanwhile");
    }
    co_return found;
}

Task<Result<bool>> EndpointBook::remove(EndpointId id) {
    auto removed = co_await store_.remove_endpoint(id);
    if (removed) {
        auto refreshed = co_await refresh();
        if (!refreshed) {
            co_return fail(std::move(refreshed.error()));
        }
    }
    co_return removed;
}

Task<Result<>> EndpointBook::disable(EndpointId id, std::string why) {
    Result<> outcome;
    for (int i = 0; i < kDisableTries; ++i) {
        const EndpointPtr endpoint = find(id);
        if (!endpoint || endpoint->disabled) {
            co_return Result<>();
        }
        Endpoint changed = *endpoint;
        changed.disabled = why;
        auto saved = co_await save(std::move(changed));
        if (saved || saved.error().code != Code::conflict) {
            co_return saved ? Result<>() : fail(std::move(saved.error()));
        }
        outcome = fail(std::move(saved.error()));
        auto refreshed = co_await refresh();
        if (!refreshed) {
            co_return refreshed;
        }
    }
    co_return outcome;
}

}  // namespace comfyd::notify
