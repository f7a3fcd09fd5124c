#include "fleet/instances/plan.hpp"

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "fleet/instances/parking.hpp"
#include "fleet/instances/wants.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;
using Kind = Step::Kind;

// Where an instance is whose machine is in this state.
InstanceState reached(Machine::State state) {
    switch (state) {
        case Machine::State::creating:
            return creating;
        case Machine::State::pulling:
            return pulling;
        default:
            return starting;
    }
}

bool has_ended(const Machine& machine) {
    using State = Machine::State;
    const State state = machine.state;
    return state == State::made || state == State::failed || state == State::stopped ||
           state == State::stopping;
}

std::string ending_of(const Machine& machine) {
    const std::string what = "its machine is " + std::string(to_string(machine.state));
    return machine.reason.empty() ? what : what + ": " + machine.reason;
}

// Whoever waits for such a machine is served by it.
bool gives(const Offer& offer, const MachineWish& want) {
    return is_wanted(offer, want) &&
           (want.region.empty() || lower(offer.region) == lower(want.region));
}

std::string span_of(Millis time) {
    if (time < std::chrono::minutes(2)) {
        return std::to_string(std::chrono::floor<std::chrono::seconds>(time).count()) + " s";
    }
    return std::to_string(std::chrono::floor<std::chrono::minutes>(time).count()) + " min";
}

class Planner {
public:
    explicit Planner(const View& view) : view_(view) {
        for (const PoolGoal& pool : view.pools) {
            goals_[pool.name] = &pool;
        }
    }

    std::vector<Step> run() {
        for (const PoolGoal& pool : view_.pools) {
            const int missing = resize(pool);
            find_wants(pool);
            grow(pool, missing);
        }
        for (const Instance& instance : view_.instances) {
            const Aside& aside = aside_of(instance);
            if (!aside.is_busy && aside.rests_until <= view_.now) {
                decide(instance, aside);
            }
        }
        for (const auto& [provider, listing] : view_.listings) {
            find_strays(provider, listing);
        }
        return std::move(steps_);
    }

private:
    const Aside& aside_of(const Instance& instance) const {
        return fleet::aside_of(view_, instance);
    }
    const PoolGoal* goal_of(const Instance& instance) const {
        const auto found = goals_.find(instance.pool);
        return found == goals_.end() ? nullptr : found->second;
    }

    Step& add(Kind kind, const Instance& instance, std::string why = {}) {
        Step& step = steps_.emplace_back();
        step.kind = kind;
        step.pool = instance.pool;
        step.instance = instance.id;
        step.provider = instance.provider;
        step.why = std::move(why);
        return step;
    }
    void leave(const Instance& instance, bool has_failed, std::string why) {
        Step& step = add(Kind::leave, instance, std::move(why));
        step.has_failed = has_failed;
        step.counts = has_failed && !instance.when(ready);
    }
    void end(const Instance& instance, bool has_failed, std::string why) {
        add(Kind::end, instance, std::move(why)).has_failed = has_failed;
    }

    // How many are missing. Those of one too many that cost the least to give up go first.
    int resize(const PoolGoal& pool) {
        std::vector<const Instance*> wanted;
        int waking = 0;
        for (const Instance& instance : view_.instances) {
            if (instance.pool != pool.name || view_.leaving.contains(instance.id)) {
                continue;
            }
            if (is_wanted(instance.state)) {
                wanted.push_back(&instance);
            } else if (aside_of(instance).is_waking) {
                ++waking;
            }
        }
        const int missing = pool.size - static_cast<int>(wanted.size()) - waking;
        if (pool.is_scaled && !pool.drains) {
            std::erase_if(wanted, [this](const Instance* one) {
                return aside_of(*one).jobs > aside_of(*one).best_effort;
            });
        }
        std::ranges::sort(wanted, {}, [this](const Instance* one) {
            const Time since = one->when(requested).value_or(Time());
            return std::tuple(
                one->state,
                aside_of(*one).jobs,
                aside_of(*one).wanted,
                -since.time_since_epoch().count(),
                one->id
            );
        });
        const auto superfluous = static_cast<std::size_t>(std::max(0, -missing));
        wanted.resize(std::min(wanted.size(), superfluous));
        for (const Instance* one : wanted) {
            too_many_.insert(one->id);
        }
        may_park_.merge(places_to_park(view_, pool, wanted));
        return missing;
    }

    // Those that are stopped before new ones, but where jobs ask for others.
    void grow(const PoolGoal& pool, int missing) {
        if (pool.is_paused || pool.rests_until > view_.now) {
            return;
        }
        const std::string why = pool.is_scaled
                                    ? pool.why
                                    : "the pool has " + std::to_string(pool.size - missing) +
                                          " of " + std::to_string(pool.size);
        std::vector<MachineWish>& wants = wants_[pool.name];
        missing -= pool.pending;
        for (const auto& [is_stopped, since, one] : find_stopped(view_, pool, may_park_)) {
            if (missing <= 0) {
                return;
            }
            const auto want = std::ranges::find_if(wants, [&one](const MachineWish& wish) {
                return gives(one->offer, wish);
            });
            if (want != wants.end()) {
                wants.erase(want);
            } else if (std::ssize(wants) >= missing) {
                continue;
            }
            --missing;
            if (is_stopped) {
                add(Kind::wake, *one, why);
                woken_.insert(one->id);
            }
        }
        for (int i = 0; i < missing; ++i) {
            Step& step = steps_.emplace_back();
            step.kind = Kind::request;
            step.pool = pool.name;
            step.why = why;
        }
    }

    // Why it shall go; empty: it shall not.
    std::string why_unwanted(const Instance& instance) const {
        if (view_.leaving.contains(instance.id)) {
            return "an operator wants it gone";
        }
        if (goal_of(instance) == nullptr) {
            return "there is no pool '" + instance.pool + "' any more";
        }
        if (too_many_.contains(instance.id)) {
            const PoolGoal& goal = *goal_of(instance);
            return goal.is_scaled ? goal.why : "the pool has more than its size";
        }
        return {};
    }

    // Since the provider was asked.
    Millis age(const Instance& instance) const {
        return view_.now - instance.begun().value_or(view_.now);
    }
    // A machine that a listing does not show may be there all the same: the order may have been
    // under way when comfyd ended, and clouds list what they made only after a while.
    bool may_show_up(const Instance& instance, const Aside& aside, const Listing& listing) const {
        const bool is_local = view_.local.contains(instance.provider);
        if (aside.was_listed || (is_local && !instance.machine.empty())) {
            return false;
        }
        const Time ordered = std::max(
            aside.ordered_at.value_or(Time()), instance.when(creating).value_or(listing.at)
        );
        return listing.at - ordered < (is_local ? kUnderWayMax : kUnclearMax);
    }

    void decide(const Instance& instance, const Aside& aside) {
        switch (instance.state) {
            case requested:
                return begin(instance);
            case creating:
            case pulling:
            case starting:
            case warming:
                return bring_up(instance, aside);
            case ready:
                return look_after(instance, aside);
            case draining:
                add(Kind::drain, instance, instance.reason);
                return;
            case parked:
                return keep_parked(instance, aside);
            case removing:
                return see_off(instance, aside);
            case gone:
            case failed:
                return;
        }
    }

    void begin(const Instance& instance) {
        if (const std::string why = why_unwanted(instance); !why.empty()) {
            return end(instance, false, why);
        }
        const PoolGoal& goal = *goal_of(instance);
        if (goal.is_paused || goal.rests_until > view_.now) {
            return;
        }
        std::vector<MachineWish>& wants = wants_[goal.name];
        for (auto want = wants.begin(); want != wants.end(); ++want) {
            const auto places = places_for(goal.offers, *want);
            for (const std::size_t place : places) {
                if (!waits_for_spot(instance, goal, place) && is_to_be_had(goal, place, *want)) {
                    create(instance, goal, place).want = *want;
                    wants.erase(want);
                    return;
                }
            }
            if (goal.is_scaled && !places.empty()) {
                wants.erase(want);  // it is what this one was requested for, and no other will do
                return;
            }
        }
        for (std::size_t i = 0; i < goal.offers.size(); ++i) {
            const std::size_t place = i < goal.order.size() ? goal.order[i] : i;
            if (!waits_for_spot(instance, goal, place) && is_to_be_had(goal, place, {})) {
                create(instance, goal, place);
                return;
            }
        }
    }

    bool waits_for_spot(const Instance& instance, const PoolGoal& goal, std::size_t place) const {
        const auto is_spot = [](const OfferWish& offer) { return offer.market == Market::spot; };
        const Time since =
            aside_of(instance).wanted_since.value_or(instance.when(requested).value_or(view_.now));
        return goal.is_scaled && !is_spot(goal.offers[place]) &&
               std::ranges::any_of(goal.offers, is_spot) && view_.now - since < goal.spot_wait;
    }

    bool is_to_be_had(
        const PoolGoal& goal, std::size_t place, const std::optional<MachineWish>& want
    ) const {
        const Time now = view_.now;
        return !rests(view_.providers_rest, goal.offers[place].provider, now) &&
               !(want ? rests(view_.wants_rest, offer_key(goal.name, place, want), now)
                      : rests(view_.offers_rest, std::pair(goal.name, place), now));
    }

    Step& create(const Instance& instance, const PoolGoal& goal, std::size_t place) {
        Step& step = add(Kind::create, instance);
        step.offer = place;
        step.provider = goal.offers[place].provider;
        return step;
    }

    // One that is on its way is enough until it is there. What those that are there are, the wants
    // know already.
    void find_wants(const PoolGoal& pool) {
        for (const MachineWish& want : pool.wants) {
            const bool is_coming =
                std::ranges::any_of(view_.instances, [&](const Instance& instance) {
                    const Aside& aside = aside_of(instance);
                    if (aside.is_busy && aside.want == want) {
                        return true;
                    }
                    return instance.pool == pool.name && instance.state > requested &&
                           instance.state < ready && why_unwanted(instance).empty() &&
                           gives(instance.offer, want);
                });
            if (!is_coming) {
                wants_[pool.name].push_back(want);
            }
        }
    }

    void bring_up(const Instance& instance, const Aside& aside) {
        if (const std::string why = why_unwanted(instance); !why.empty()) {
            return leave(instance, false, why);
        }
        if (const Millis limit = goal_of(instance)->start_max; age(instance) > limit) {
            return leave(
                instance,
                true,
                "not ready within " + span_of(limit) + ", still " +
                    std::string(to_string(instance.state)) +
                    (instance.reason.empty() ? "" : ": " + instance.reason)
            );
        }
        const Listing* listing = fresh_listing(view_, instance);
        if (listing == nullptr) {
            return;
        }
        const Machine* machine = find_machine(instance, *listing);
        if (machine == nullptr) {
            return bring_up_unseen(instance, aside, *listing);
        }
        if (machine->state == Machine::State::made) {
            return leave(instance, false, machine->reason);
        }
        if (instance.state == starting && instance.is_woken() && is_asleep(*machine)) {
            return switch_to(Kind::wake, instance, aside, *machine);
        }
        if (has_ended(*machine)) {
            return leave(instance, true, ending_of(*machine));
        }
        if (machine->reclaimed_at) {
            return leave(instance, false, "its provider takes it back");
        }
        const InstanceState to = std::max(instance.state, reached(machine->state));
        if (instance.machine != machine->id || instance.state != to ||
            (machine->url && *machine->url != instance.url)) {
            Step& step = add(Kind::follow, instance, machine->reason);
            step.machine = *machine;
            step.to = to;
        } else if (instance.state == warming) {
            add(Kind::warm_up, instance);
        } else if (machine->state == Machine::State::running && is_reachable(instance)) {
            add(Kind::examine, instance);
        }
    }

    bool is_reachable(const Instance& instance) const {
        return !instance.url.empty() || view_.dial_in.contains(instance.provider);
    }

    // What shows up later than that is a stray. Of a template that never ran nothing is known.
    void bring_up_unseen(const Instance& instance, const Aside& aside, const Listing& listing) {
        if (may_show_up(instance, aside, listing)) {
            return;
        }
        if (instance.machine.empty()) {
            end(instance, true, "the provider gave no clear answer, and no machine came of it");
        } else if (aside.missed >= kMissedMax) {
            leave(instance, true, "its machine is gone");
            steps_.back().counts = instance.state > pulling;
        }
    }

    void look_after(const Instance& instance, const Aside& aside) {
        if (const std::string why = why_unwanted(instance); !why.empty()) {
            const bool parks = too_many_.contains(instance.id) && may_park_.contains(instance.id);
            add(Kind::drain, instance, why).to = parks ? parked : removing;
            return;
        }
        const Listing* listing = fresh_listing(view_, instance);
        const Machine* machine = listing == nullptr ? nullptr : find_machine(instance, *listing);
        if (listing != nullptr && machine == nullptr && aside.missed >= kMissedMax) {
            return leave(instance, true, "its machine is gone");
        }
        if (machine != nullptr && has_ended(*machine)) {
            return leave(instance, true, ending_of(*machine));
        }
        if (machine != nullptr && machine->reclaimed_at) {
            add(Kind::drain, instance, "its provider takes it back").machine = *machine;
            return;
        }
        if (machine != nullptr && machine->url && *machine->url != instance.url) {
            return leave(instance, true, "its address has changed");
        }
        if (aside.silent_since && view_.now - *aside.silent_since >= kSilentMax) {
            return leave(
                instance, true, "its ComfyUI does not answer since " + span_of(kSilentMax)
            );
        }
        if (!aside.is_employed) {
            add(Kind::employ, instance);
        } else if (aside.silent_since && view_.now - *aside.silent_since >= kInquireAfter &&
                   is_reachable(instance)) {
            add(Kind::inquire, instance);
        }
    }

    // Its disk is kept, and it costs less or nothing meanwhile.
    void keep_parked(const Instance& instance, const Aside& aside) {
        if (woken_.contains(instance.id)) {
            return;
        }
        if (const std::string why = why_unwanted(instance); !why.empty()) {
            return leave(instance, false, why);
        }
        if (!may_park_.contains(instance.id)) {
            return leave(instance, false, "the pool keeps fewer that are stopped, or other ones");
        }
        const Listing* listing = fresh_listing(view_, instance);
        const Machine* machine = listing == nullptr ? nullptr : find_machine(instance, *listing);
        if (machine == nullptr) {
            if (listing != nullptr && aside.missed >= kMissedMax) {
                leave(instance, true, "its machine is gone");
            }
            return;
        }
        if (machine->reclaimed_at || (has_ended(*machine) && !is_asleep(*machine))) {
            return leave(instance, true, ending_of(*machine));
        }
        if (machine->state == Machine::State::stopped) {
            return;
        }
        if (view_.now - instance.when(parked).value_or(view_.now) >= kStopMax) {
            return leave(instance, true, "it did not stop within " + span_of(kStopMax));
        }
        switch_to(Kind::park, instance, aside, *machine);
    }

    static bool is_asleep(const Machine& machine) {
        return machine.state == Machine::State::stopped ||
               machine.state == Machine::State::stopping;
    }

    // Its provider is told, and told again where nothing comes of it.
    void switch_to(
        Kind kind, const Instance& instance, const Aside& aside, const Machine& machine
    ) {
        const bool is_told = aside.switched_at && view_.now - *aside.switched_at < kTellAgain;
        if (!is_told && machine.state != Machine::State::stopping) {
            add(kind, instance, instance.reason);
        }
    }

    void see_off(const Instance& instance, const Aside& aside) {
        if (!instance.machine.empty() && !aside.removed_at) {
            add(Kind::remove, instance);
            return;
        }
        const Listing* listing = fresh_listing(view_, instance);
        if (listing == nullptr) {
            return;
        }
        const Machine* machine = find_machine(instance, *listing);
        if (machine == nullptr) {
            if (!may_show_up(instance, aside, *listing)) {
                end(instance, instance.has_failed, instance.reason);
            }
        } else if (instance.machine.empty()) {
            Step& step = add(Kind::follow, instance, instance.reason);
            step.machine = *machine;
            step.to = removing;
        } else if (view_.now - *aside.removed_at >= kTellAgain) {
            add(Kind::remove, instance);
        }
    }

    void find_strays(const std::string& provider, const Listing& listing) {
        for (const Machine& machine : listing.machines) {
            const auto id = instance_of(machine.name, view_.fleet);
            if (!id || machine.state == Machine::State::gone || !is_stray(*id, machine, listing)) {
                continue;
            }
            const auto seen = listing.first_seen.find(machine.id);
            const Time since = machine.made_at.value_or(
                seen == listing.first_seen.end() ? view_.now : seen->second
            );
            if (view_.now - since >= kStrayAge) {
                Step& step = steps_.emplace_back();
                step.kind = Kind::remove_stray;
                step.instance = *id;
                step.provider = provider;
                step.machine = machine;
                step.why = "no open instance knows it";
            }
        }
    }

    // Also the second of two under one name.
    bool is_stray(const std::string& id, const Machine& machine, const Listing& listing) const {
        if (!listing.known.contains(id)) {
            return true;
        }
        const auto ours = std::ranges::find(view_.instances, id, &Instance::id);
        return ours != view_.instances.end() && !ours->machine.empty() &&
               ours->machine != machine.id;
    }

    const View& view_;
    std::map<std::string, const PoolGoal*> goals_;
    std::set<std::string> too_many_;
    std::set<std::string> may_park_;
    std::set<std::string> woken_;
    std::map<std::string, std::vector<MachineWish>> wants_;  // by pool, still to be ordered
    std::vector<Step> steps_;
};

}  // namespace

std::string offer_key(
    const std::string& pool, std::size_t place, const std::optional<MachineWish>& want
) {
    std::string key = pool + "#" + std::to_string(place);
    return want ? key + Requirement().on(*want).encoded() : key;
}

const Aside& aside_of(const View& view, const Instance& instance) {
    static const Aside kNothing;
    const auto found = view.aside.find(instance.id);
    return found == view.aside.end() ? kNothing : found->second;
}

const Listing* fresh_listing(const View& view, const Instance& instance) {
    const auto found = view.listings.find(instance.provider);
    const bool is_fresh =
        found != view.listings.end() && found->second.begun > aside_of(view, instance).acted;
    return is_fresh ? &found->second : nullptr;
}

std::vector<Step> plan(const View& view) {
    return Planner(view).run();
}

// Of several under its name the first is its own; the others are strays.
const Machine* find_machine(const Instance& instance, const Listing& listing) {
    const std::string name = instance.name();
    const Machine* found = nullptr;
    for (const Machine& machine : listing.machines) {
        const bool is_it =
            instance.machine.empty() ? machine.name == name : machine.id == instance.machine;
        if (is_it && machine.state != Machine::State::gone &&
            (found == nullptr || machine.id < found->id)) {
            found = &machine;
        }
    }
    return found;
}

}  // namespace comfyd::fleet
