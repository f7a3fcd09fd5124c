// What the keeper shall do now, given what there is and what there shall be. Pure: it asks nobody
// and waits for nothing; the same view gives the same steps. What it must never do is here, and is
// tried with thousands of schedules in tests/simulation/instances:
//
// - A provider is asked to create only for an instance that is `requested`, which is stored as
//   `creating` first: so never twice without a clear no in between.
// - What became of an instance is read from a listing that was begun after the latest deed for it.
// - That a machine is not there is believed once it was seen and is not any more, or when it must
//   have shown up by then: a row that has ended has no machine.
// - A machine that no open instance knows is removed, once it is five minutes old; one whose name
//   is not of this fleet is not looked at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/requirement.hpp"
#include "fleet/instances/instance.hpp"

namespace comfyd::fleet {

inline constexpr Millis kUnclearMax =
    std::chrono::minutes(2);  // from an order until its machine must have shown up
// Likewise, where all that was made is listed at once: the order itself may still be under way.
inline constexpr Millis kUnderWayMax = std::chrono::seconds(20);
inline constexpr Millis kStrayAge = std::chrono::minutes(5);
inline constexpr Millis kTellAgain = std::chrono::minutes(1);  // what a provider agreed to
inline constexpr Millis kSilentMax = std::chrono::minutes(5);  // of a worker on a machine that runs
inline constexpr Millis kInquireAfter = std::chrono::seconds(5);  // of that
inline constexpr int kMissedMax = 2;  // listings in a row without a machine that was there
inline constexpr Millis kStopMax = std::chrono::minutes(10);  // for one that shall be stopped

// What there shall be of a pool.
struct PoolGoal {
    std::string name;
    int size = 0;
    int pending = 0;         // instances that are being written down
    int parked = 0;          // of those too many, so many are stopped and not removed
    std::string software{};  // of machines that it starts now
    std::vector<OfferWish> offers{};
    // Machines that waiting jobs ask for and no worker is, the most urgent first.
    std::vector<MachineWish> wants{};
    // Their places, in the order in which they are tried; empty: as they are.
    std::vector<std::size_t> order{};
    // Its size follows from what waits, because of `why`: idle machines alone are too many, none of
    // another kind is started in place of one that is wanted, and on-demand ones stand in for spot
    // ones only after a while.
    bool is_scaled = false;
    std::string why{};
    bool drains = false;  // busy ones are, too, and end their jobs
    Millis spot_wait{0};
    bool is_paused = false;  // nothing is started
    Time rests_until{};      // likewise, until then
    Millis start_max = std::chrono::minutes(10);
};

// What a provider showed.
struct Listing {
    std::uint64_t begun = 0;  // the moment at which it was asked for
    Time at{};                // the same by the clock
    std::vector<Machine> machines{};
    // All open instances of the fleet, whoever keeps them, as they were stored after that.
    std::set<std::string> known{};
    std::map<std::string, Time> first_seen{};  // by the machine's id
};

// What is known of an instance beside its row, and lost with the process.
struct Aside {
    bool is_busy = false;               // something is being done for it
    std::optional<MachineWish> want{};  // such a machine is being ordered for it, then
    std::uint64_t acted = 0;            // the moment after its provider was told something
    std::optional<Time> ordered_at{};   // its provider answered the order, or did not
    bool was_listed = false;            // a listing showed its machine
    int missed = 0;                     // listings in a row that did not
    std::optional<Time> removed_at{};   // its provider was told, and said yes
    std::optional<Time> switched_at{};  // likewise, that it shall stop or start
    bool is_waking = false;             // it is being started again, and counts for its pool
    Time rests_until{};
    bool is_employed = false;            // it is a worker of the fleet
    std::optional<Time> silent_since{};  // as such it does not answer
    std::size_t jobs = 0;                // that it runs
    std::size_t best_effort = 0;         // of them
    std::optional<Time> wanted_since{};  // the first time
    std::size_t wanted = 0;              // waiting jobs whose models it has loaded
};

struct View {
    Time now{};
    std::string fleet;
    std::vector<PoolGoal> pools{};
    std::vector<Instance> instances{};  // open ones that are ours to keep
    std::map<std::string, Aside> aside{};
    std::map<std::string, Listing> listings{};  // the latest, by provider
    std::set<std::string> leaving{};            // instances that operators want gone
    std::map<std::string, Time> providers_rest{};
    std::map<std::pair<std::string, std::size_t>, Time> offers_rest{};  // by pool and place
    std::map<std::string, Time> wants_rest{};  // of what is wanted of an offer, by offer_key()
    std::set<std::string> dial_in{};           // providers whose machines have no address
    std::set<std::string> local{};             // and those that list at once what was made
    std::set<std::string> parking{};           // and those where one that is stopped keeps its disk
};

struct Step {
    enum class Kind {
        request,       // one more instance of the pool
        create,        // asks the pool's offer at `offer`
        follow,        // writes down what `machine` tells, and comes into `to`
        examine,       // whether it can serve
        warm_up,       // and has it run a workflow
        inquire,       // of one that serves: why it does not answer
        employ,        // makes it a worker of the fleet
        drain,         // lets it end its jobs
        leave,         // takes it out of the fleet at once
        park,          // tells its provider to stop it
        wake,          // and to start it again
        remove,        // tells its provider
        end,           // closes the row
        remove_stray,  // `machine`, which nobody knows
    };

    Kind kind;
    std::string pool{};
    std::string instance{};
    std::string provider{};
    std::size_t offer = 0;
    std::optional<MachineWish> want{};  // of the offer, such a machine alone
    std::optional<Machine> machine{};
    InstanceState to = InstanceState::requested;
    bool has_failed = false;
    bool counts = false;  // it says something about the pool's template: a start of it failed
    std::string why{};
};

const Aside& aside_of(const View& view, const Instance& instance);
// Nothing is concluded from a listing that may be older than what was done: nullptr.
const Listing* fresh_listing(const View& view, const Instance& instance);

template <class Key>
bool rests(const std::map<Key, Time>& until, const Key& who, Time now) {
    const auto found = until.find(who);
    return found != until.end() && found->second > now;
}

// At most one for each instance.
std::vector<Step> plan(const View& view);

// "pool#1", and what is wanted of it where that is not all.
std::string offer_key(
    const std::string& pool, std::size_t place, const std::optional<MachineWish>& want = {}
);

// The machine of an instance as its provider's listing shows it; nullptr: not there.
const Machine* find_machine(const Instance& instance, const Listing& listing);

}  // namespace comfyd::fleet
