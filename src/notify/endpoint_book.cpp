#include "notify/endpoint_book.hpp"

#include <utility>

namespace comfyd::notify {
namespace {

constexpr int kDisableTries = 5;

Route route_to(const Endpoint& endpoint) {
    Route route;
    route.to = {endpoint.delivery_name(), EndpointTarget{endpoint.id}};
    route.tenant = endpoint.tenant;
    route.events = endpoint.webhook.events;
    return route;
}

std::vector<Route> routes_to(const Endpoints& endpoints) {
    std::vector<Route> routes;
    for (const auto& [id, endpoint] : endpoints) {
        if (!endpoint->disabled) {
            routes.push_back(route_to(*endpoint));
        }
    }
    return routes;
}

}  // namespace

EndpointBook::EndpointBook(Executor executor, Clock& clock, EndpointStore& store, Routing& routing)
    : clock_(clock),
      store_(store),
      known_(
          executor,
          {.what = "the endpoints of webhooks",
           .changes = [&store] { return store.endpoint_changes(); },
           .read = [this] { return read_all(); },
           .taken = [&routing](const Endpoints& all) { routing.set_endpoints(routes_to(all)); }},
          std::make_shared<Endpoints>()
      ) {}

EndpointBook::~EndpointBook() = default;

Task<Result<EndpointBook::Known::Reading>> EndpointBook::read_all() {
    auto all = co_await store_.all_endpoints();
    if (!all) {
        co_return fail(std::move(all.error()));
    }
    auto next = std::make_shared<Endpoints>();
    for (Endpoint& endpoint : all->endpoints) {
        const EndpointId id = endpoint.id;
        (*next)[id] = std::make_shared<const Endpoint>(std::move(endpoint));
    }
    co_return Known::Reading{all->changes, std::move(next)};
}

EndpointPtr EndpointBook::find(EndpointId id) const {
    const auto all = known_.now();
    const auto found = all->find(id);
    return found == all->end() ? nullptr : found->second;
}

std::vector<EndpointPtr> EndpointBook::of_tenant(const std::string& tenant) const {
    std::vector<EndpointPtr> found;
    const auto all = known_.now();
    for (const auto& [id, endpoint] : *all) {
        if (endpoint->tenant == tenant) {
            found.push_back(endpoint);
        }
    }
    return found;
}

std::vector<EndpointPtr> EndpointBook::of_all() const {
    std::vector<EndpointPtr> found;
    const auto all = known_.now();
    for (const auto& [id, endpoint] : *all) {
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
