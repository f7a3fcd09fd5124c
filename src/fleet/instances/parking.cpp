#include "fleet/instances/parking.hpp"

#include <algorithm>
#include <functional>

namespace comfyd::fleet {
namespace {

using enum InstanceState;

// A spot machine that is stopped is somebody else's as soon as they bid for it.
bool can_park(const View& view, const PoolGoal& pool, const Instance& instance) {
    return view.parking.contains(instance.provider) && instance.offer.market == Market::on_demand &&
           instance.software == pool.software && !view.leaving.contains(instance.id);
}

}  // namespace

std::set<std::string> places_to_park(
    const View& view, const PoolGoal& pool, const std::vector<const Instance*>& superfluous
) {
    std::vector<const Instance*> candidates;
    for (const InstanceState state : {parked, draining}) {
        for (const Instance& instance : view.instances) {
            if (instance.pool == pool.name && instance.state == state &&
                (state == parked || instance.parks)) {
                candidates.push_back(&instance);
            }
        }
    }
    for (const Instance* one : superfluous) {
        if (one->state == ready) {
            candidates.push_back(one);
        }
    }
    std::set<std::string> places;
    for (const Instance* one : candidates) {
        if (std::ssize(places) < pool.parked && can_park(view, pool, *one)) {
            places.insert(one->id);
        }
    }
    return places;
}

std::vector<Stopped> find_stopped(
    const View& view, const PoolGoal& pool, const std::set<std::string>& may_park
) {
    std::vector<Stopped> found;
    for (const Instance& instance : view.instances) {
        const Aside& aside = aside_of(view, instance);
        if (instance.pool != pool.name || instance.state != parked ||
            !may_park.contains(instance.id) || aside.is_waking || aside.rests_until > view.now ||
            rests(view.providers_rest, instance.provider, view.now)) {
            continue;
        }
        const Listing* listing = fresh_listing(view, instance);
        const Machine* machine = listing == nullptr ? nullptr : find_machine(instance, *listing);
        const bool is_stopped =
            !aside.is_busy && machine != nullptr && machine->state == Machine::State::stopped;
        const Time since = instance.when(parked).value_or(Time());
        if (is_stopped || view.now - since < kTellAgain) {
            found.push_back({is_stopped, since, &instance});
        }
    }
    std::ranges::sort(found, std::greater());
    return found;
}

}  // namespace comfyd::fleet
