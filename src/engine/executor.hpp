// Runs one plan: what is cached is taken from the cache, independent nodes run at the same time on
// the pool, and all of it is told in the order in which ComfyUI, running one node at a time, would
// have done it. A failure counts when its turn comes, so that it is always the same one. Nodes that
// a node adds join the run when its turn comes.
//
// Lives on the stack of the thread that calls run(), which returns only when no task of it is left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/cache.hpp"
#include "engine/call.hpp"
#include "engine/plan.hpp"
#include "engine/schedule.hpp"

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
    void take_cached();
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
    std::vector<std::size_t> advance();
    enum class Turn { over, waiting };
    Turn take_turn(std::size_t node, std::vector<std::size_t>& to_launch);
    void launch(std::size_t unit, std::vector<std::size_t>& to_launch);
    Turn tell_result(std::size_t node, std::vector<std::size_t>& to_launch);
    Turn expand(std::size_t node, std::vector<std::size_t>& to_launch);
    Result<> add_nodes(std::size_t node);
    void add_units(std::size_t first_node, const Outcome& open);
    std::vector<std::size_t> resolve(std::size_t unit);
    void tell_cached(std::size_t node);
    void retry_if_memory_was_short(std::size_t unit, std::vector<std::size_t>& to_launch);
    bool ask(std::size_t node, std::vector<std::size_t>& to_launch);
    Result<std::vector<std::size_t>> missing_sources(std::size_t node);
    enum class Kind { step, content };
    void tell(std::size_t unit, Kind kind, Event event);
    void fail_run(Error error);
    void fail_run(Error error, std::size_t node);

    bool stopped() const;
    std::size_t source_unit(const PlannedInput& input) const { return unit_of_[input.link.source]; }

    Parts parts_;
    Plan& plan_;  // grows under both mutexes, so that either is enough to read it
    std::stop_token stop_;
    Surroundings surroundings_;

    std::vector<std::size_t> unit_of_;  // by node; like the plan
    std::deque<Unit> units_;            // likewise

    // Held while the listener is called; taken before mutex_.
    std::mutex turn_mutex_;
    std::optional<Schedule> schedule_;
    json::object outputs_;
    std::optional<Error> failure_;

    std::mutex mutex_;
    std::condition_variable idle_;
    std::size_t tasks_ = 0;      // posted or running
    std::size_t ahead_ = 0;      // running before their turn
    Charge shown_;               // for the uis that the run keeps
    const std::size_t planned_;  // nodes of the prompt
    std::atomic<bool> failed_ = false;
};

}  // namespace comfyd::engine
