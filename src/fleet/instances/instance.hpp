// One machine that this fleet wants, has or had, from the wish for it to its end: a row of the
// ledger, with one state machine whoever provides it. Pure; changed by the keeper alone.
//
//   requested ─▶ creating ─▶ pulling ─▶ starting ─▶ warming ─▶ ready ─▶ draining ─▶ removing ─▶
//   gone
//                                          ▲                               │            └────▶
//                                          failed └─────────── parked ◀───────────┘
//
// `creating` is stored before the provider is asked: from then on there may be a machine, and only
// a listing tells that there is none. A row ends once that is certain.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

enum class InstanceState {
    requested,  // wanted; nobody was asked for it yet, or all said no
    creating,   // a provider was, or may have been, asked
    pulling,    // its image
    starting,   // it runs, and its ComfyUI does not answer yet
    warming,    // it answers, has what was promised, and runs the warm-up
    ready,      // a worker of the fleet
    draining,   // ends its jobs
    parked,     // stopped, its disk kept
    removing,   // its provider is told, until a listing shows it no more
    gone,       // ended as it should
    failed,     // ended otherwise
};
inline constexpr std::array kInstanceStates{
    InstanceState::requested,
    InstanceState::creating,
    InstanceState::pulling,
    InstanceState::starting,
    InstanceState::warming,
    InstanceState::ready,
    InstanceState::draining,
    InstanceState::parked,
    InstanceState::removing,
    InstanceState::gone,
    InstanceState::failed,
};
std::string_view to_string(InstanceState state);
std::optional<InstanceState> parse_instance_state(std::string_view name);

constexpr bool is_open(InstanceState state) {
    return state != InstanceState::gone && state != InstanceState::failed;
}
// It counts towards the size of its pool.
constexpr bool is_wanted(InstanceState state) {
    return state < InstanceState::draining;
}
bool can_follow(InstanceState from, InstanceState to);

struct Instance {
    std::string id;  // new_instance_id()
    std::string fleet;
    std::string domain = "main";  // whose leader keeps it
    std::string pool;
    InstanceState state = InstanceState::requested;
    std::string provider{};  // from `creating` on, like the next
    Offer offer{};
    std::string machine{};       // the provider's id; empty: none is known
    std::string url{};           // of its agent; empty: not known yet
    std::string gpu{};           // that it told of; workers with the same one share it
    std::string software{};      // a mark of what is on it
    std::string token{};         // a secret: who has it may use the agent
    std::string reason{};        // why it is in its state
    bool has_failed = false;     // it leaves because something went wrong: it ends as `failed`
    bool parks = false;          // it drains to be stopped, not to be removed
    int refusals = 0;            // by providers that were asked for it
    std::uint64_t revision = 0;  // counts what was stored; the store refuses a stale one
    std::map<InstanceState, Time> since{};  // when it last came into each state

    // "comfyd-{fleet}-{instance}": all that finds a machine again whose id was lost.
    std::string name() const;
    // As the scheduler and the API know it.
    std::string worker() const { return pool + "-" + id; }
    std::optional<Time> when(InstanceState reached) const;
    // It was stopped, and is brought up again.
    bool is_woken() const { return state < InstanceState::ready && when(InstanceState::parked); }
    // When it was last told to come up.
    std::optional<Time> begun() const;

    // Without the token.
    json::object to_json() const;
    // nullopt: it is none.
    static std::optional<Instance> from_json(const json::object& about);
};

// Of letters and digits alone, so that no name of one fleet can be read as another's.
std::string new_instance_id();
std::string machine_name(std::string_view fleet, std::string_view instance);
// Whose machine it is; nullopt: none of this fleet.
std::optional<std::string> instance_of(std::string_view machine_name, std::string_view fleet);
// From 1 to 24 small letters, digits and '-', neither first nor last.
bool is_fleet_name(std::string_view name);

// The instance in another state, its revision counted. Code::conflict: it cannot come there.
Result<Instance> moved(Instance instance, InstanceState to, Time now, std::string reason);

}  // namespace comfyd::fleet
