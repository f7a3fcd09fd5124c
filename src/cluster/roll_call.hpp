// Keeps this node on the list of nodes, and sets its clock by the database's on the way. Core
// executor.
#pragma once

#include <functional>
#include <optional>

#include "base/task.hpp"
#include "base/time.hpp"
#include "cluster/roster.hpp"
#include "cluster/shared_clock.hpp"

namespace comfyd::cluster {

class RollCall {
public:
    static constexpr Millis kEvery{5'000};
    // A clock that is further off is warned of.
    static constexpr Millis kClockMayBeOff{2'000};
    // By less nothing is set: an answer that takes its time looks the same.
    static constexpr Millis kWorthSetting{250};

    // All outlive it.
    struct Parts {
        Executor core;
        SharedClock& clock;
        Roster& roster;
        NodeId node;
        std::function<json::object()> about;
    };
    explicit RollCall(Parts parts) : p_(std::move(parts)), tasks_(p_.core) {}

    void start();
    // Takes it from the list, where the database answers.
    Task<> stop();

    // How much later it is here than in the database, to a few milliseconds; nullopt: not known
    // yet.
    std::optional<Millis> clock_ahead() const { return clock_ahead_; }

private:
    Task<> run();
    Task<> answer();
    void note_clock(Millis ahead);

    Parts p_;
    std::optional<Millis> clock_ahead_;
    bool is_listed_ = false;
    bool has_warned_ = false;
    TaskGroup tasks_;
};

}  // namespace comfyd::cluster
