// What there is besides the nodes, and outlives them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulation/chance.hpp"
#include "simulation/journal.hpp"
#include "simulation/leases/agenda.hpp"
#include "simulation/leases/breaks.hpp"
#include "simulation/leases/database.hpp"
#include "simulation/leases/machine.hpp"
#include "simulation/leases/rules.hpp"

namespace comfyd::simulation {

struct LeaseWorld {
    static constexpr Time kStart = Time(Millis(1'700'000'000'000));

    LeaseWorld(
        std::uint64_t seed,
        Break left_out,
        bool keeps_journal,
        std::function<void(NodeId, int)> tell_node
    )
        : broken(left_out),
          session_ended(std::move(tell_node)),
          chance(seed),
          journal(agenda, kStart, keeps_journal),
          database(
              agenda, rules, left_out, std::chrono::hours(chance.below(48) - 24), session_ended
          ) {
        machines.emplace_back("plain", false, left_out);
        machines.emplace_back("fenced", true, left_out);
    }

    // To the database or back.
    Millis latency() { return is_slow ? chance.millis(100, 2'500) : chance.millis(1, 20); }
    // From now on, or from then on, nothing is in the way of those who want to lead.
    void disturb(Millis until_in = Millis(0)) {
        database.undisturbed_since =
            std::max(database.undisturbed_since, agenda.now() + until_in + kRecovered);
    }

    Millis pause_length() { return chance.millis(50, chance.one_in(2) ? 3'000 : 20'000); }

    Break broken;
    std::function<void(NodeId, int)> session_ended;  // its node hears of it
    Chance chance;
    Agenda agenda{kStart};
    Journal journal;
    LeaseRules rules;
    Database database;
    std::vector<Machine> machines;
    bool has_trouble = true;                              // false: all is healed
    bool is_slow = false;                                 // the database
    int steps_to_a_pause = 20 << (2 * chance.below(3));   // of a node that is looked at closely
    int answers_to_a_loss = 40 << (2 * chance.below(3));  // of the database
    int sessions = 0;

private:
    // What was on its way when something broke has failed by then.
    static constexpr Millis kRecovered{4'000};
};

}  // namespace comfyd::simulation
