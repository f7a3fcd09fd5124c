#include "notify/routing.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::notify {
namespace {

bool concerns(const Route& route, const jobs::Job& job) {
    return route.workflow_id.empty() || route.workflow_id == job.workflow_id;
}

bool is_long_enough(const Route& route, const jobs::Job& job) {
    if (route.ran_at_least <= Millis(0)) {
        return true;
    }
    const auto ran = job.execution_time();
    return ran && *ran >= route.ran_at_least;
}

}  // namespace

Routes::Routes(const std::vector<Route>& routes) {
    for (const Route& route : routes) {
        (route.tenant ? by_tenant_[*route.tenant] : of_all_).push_back(route);
    }
}

std::vector<Recipient> Routes::of(const jobs::Job& job, const jobs::Event& event) const {
    std::vector<Recipient> found;
    const auto look = [&](const std::vector<Route>& routes) {
        const std::string name = jobs::webhook_event_name(event.type);
        for (const Route& route : routes) {
            // Several rules may name the same one.
            const bool is_found =
                std::ranges::find(found, route.to.endpoint, &Recipient::endpoint) != found.end();
            if (!is_found && jobs::Webhook::is_wanted(name, route.events) && concerns(route, job) &&
                is_long_enough(route, job)) {
                found.push_back(route.to);
            }
        }
    };
    if (!of_all_.empty()) {
        look(of_all_);
    }
    if (const auto own = by_tenant_.find(job.tenant); own != by_tenant_.end()) {
        look(own->second);
    }
    return found;
}

bool Routes::want_progress(const jobs::Job& job) const {
    const std::string name = jobs::webhook_event_name(jobs::EventType::progress);
    const auto wants = [&](const Route& route) {
        return jobs::Webhook::is_wanted(name, route.events) && concerns(route, job) &&
               route.ran_at_least <= Millis(0);
    };
    const auto own = by_tenant_.find(job.tenant);
    return std::ranges::any_of(of_all_, wants) ||
           (own != by_tenant_.end() && std::ranges::any_of(own->second, wants));
}

Routing::Routing(std::vector<Route> rules)
    : rules_(std::move(rules)), now_(std::make_shared<const Routes>(rules_)) {}

std::shared_ptr<const Routes> Routing::now() const {
    const Lock lock(mutex_);
    return now_;
}

void Routing::set_endpoints(std::vector<Route> endpoints) {
    endpoints.insert(endpoints.end(), rules_.begin(), rules_.end());
    auto next = std::make_shared<const Routes>(endpoints);
    const Lock lock(mutex_);
    now_ = std::move(next);
}

}  // namespace comfyd::notify
