// Runs one plan: what is cached is taken from the cache, independent nodes run at the same time on
// the pool, and all of it is told in the order in which ComfyUI, running one node at a time, would
// have done it. A failure counts when its turn comes, so that it is always the same one. Nodes that
// a node adds join the run when its turn comes.
//
// Lives on the stack of the thread that calls run(), which returns only when no task of it is left.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "engine/nodes/call.hpp"
#include "engine/run/cache.hpp"
#include "engine/run/plan.hpp"
#include "engine/run/schedule.hpp"

namespace comfyd::engine {

class Executor {
public:
    // All of them outlive the executor.
    struct Parts {
        const Registry& registry;
        const Folders& folders;
        Pool& pool;
        const std::shared_ptr<Memory>& memory;
        Cache& cache;
        Listener& listener;
    };

    Executor(
        Parts parts,
        Plan& plan,
        const json::object& prompt,
        const json::object& extra_pnginfo,
        std::stop_token stop
    );

    Result<RunResult> run();

private:
    using Event = std::function<void(Listener& to, const std::string& node_id)>;
    class Voice;

    // `expanded`: it has run, and has its result when the nodes that it added have theirs.
    enum class State { waiting, launched, expanded, done };

    // Nodes of one key: one of them runs, all of them have the result.
    struct Unit {
        std::size_t first = 0;  // of its nodes
        bool counted = false;   // its sources know it as a reader
        bool joined = false;    // one of its nodes is in the schedule

        // Guarded by mutex_.
        State state = State::waiting;
        std::size_t waits_for = 0;           // sources without a result
        std::vector<std::size_t> consumers;  // that have joined
        std::size_t readers = 0;             // units that may still read the result
        SharedResult result;                 // dropped when no reader is left
        std::optional<json::object> ui;
        std::optional<Error> failure;
        std::optional<Outcome> open;             // while it is expanded
        std::optional<std::size_t> first_added;  // of its nodes, once they are in the plan

        // Guarded by turn_mutex_.
        std::optional<std::vector<BoundInput>> asked;  // of a class with lazy inputs
        std::optional<std::size_t> teller;  // the node as which it is told of, once it has its turn
        std::vector<Event> untold;
    };

    void make_units();
    void count_readers();
    void take_cached() COMFYD_REQUIRES(turn_mutex_);
    bool asks_first(const Unit& unit) const;
    bool may_launch_ahead(const Unit& unit) const;
    enum class Admission { in_turn, ahead, refused };
    Admission admit(std::size_t unit);
    void join(const std::vector<std::size_t>& nodes, std::vector<std::size_t>& to_launch);
    void start(const std::vector<std::size_t>& units);
    void run_chain(std::size_t unit);
    std::vector<std::size_t> run_unit(std::size_t unit);
    Result<Outcome> call_node(std::size_t unit);
    Result<> charge_for(const NodeOutputs& outputs);
    SharedResult keep(std::size_t unit, NodeOutputs outputs);
    std::vector<std::size_t> complete(std::size_t unit, Result<Outcome> outcome);
    void release_sources(const Unit& unit, std::vector<SharedResult>& released);

    // Under turn_mutex_: tells what is due and says which units may run because of it.
    std::vector<std::size_t> advance() COMFYD_REQUIRES(turn_mutex_);
    enum class Turn { over, waiting };
    Turn take_turn(std::size_t node, std::vector<std::size_t>& to_launch)
        COMFYD_REQUIRES(turn_mutex_);
    void launch(std::size_t unit, std::vector<std::size_t>& to_launch) COMFYD_REQUIRES(turn_mutex_);
    Turn tell_result(std::size_t node, std::vector<std::size_t>& to_launch)
        COMFYD_REQUIRES(turn_mutex_);
    Turn expand(std::size_t node, std::vector<std::size_t>& to_launch) COMFYD_REQUIRES(turn_mutex_);
    Result<> add_nodes(std::size_t node) COMFYD_REQUIRES(turn_mutex_);
    void add_units(std::size_t first_node, const Outcome& open) COMFYD_REQUIRES(turn_mutex_);
    std::vector<std::size_t> resolve(std::size_t unit) COMFYD_REQUIRES(turn_mutex_);
    void tell_cached(std::size_t node) COMFYD_REQUIRES(turn_mutex_);
    void retry_if_memory_was_short(std::size_t unit, std::vector<std::size_t>& to_launch)
        COMFYD_REQUIRES(turn_mutex_);
    bool ask(std::size_t node, std::vector<std::size_t>& to_launch) COMFYD_REQUIRES(turn_mutex_);
    Result<std::vector<std::size_t>> missing_sources(std::size_t node) COMFYD_REQUIRES(turn_mutex_);
    enum class Kind { step, content };
    void tell(std::size_t unit, Kind kind, Event event) COMFYD_EXCLUDES(turn_mutex_);
    void fail_run(Error error) COMFYD_REQUIRES(turn_mutex_);
    void fail_run(Error error, std::size_t node) COMFYD_REQUIRES(turn_mutex_);

    bool stopped() const;
    std::size_t source_unit(const PlannedInput& input) const { return unit_of_[input.link.source]; }

    Parts parts_;
    Plan& plan_;  // grows under both mutexes, so that either is enough to read it
    std::stop_token stop_;
    Surroundings surroundings_;

    std::vector<std::size_t> unit_of_;  // by node; like the plan
    std::deque<Unit> units_;            // likewise

    // Held while the listener is called; taken before mutex_.
    Mutex turn_mutex_;
    std::optional<Schedule> schedule_ COMFYD_GUARDED_BY(turn_mutex_);
    json::object outputs_ COMFYD_GUARDED_BY(turn_mutex_);
    std::optional<Error> failure_ COMFYD_GUARDED_BY(turn_mutex_);

    Mutex mutex_;
    Condition idle_;
    std::size_t tasks_ COMFYD_GUARDED_BY(mutex_) = 0;  // posted or running
    std::size_t ahead_ COMFYD_GUARDED_BY(mutex_) = 0;  // running before their turn
    Charge shown_ COMFYD_GUARDED_BY(mutex_);           // for the uis that the run keeps
    const std::size_t planned_;                        // nodes of the prompt
    std::atomic<bool> failed_ = false;
};

}  // namespace comfyd::engine
