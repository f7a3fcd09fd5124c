// Runs one plan: what is cached is taken from the cache, independent nodes run at the same time on
// the pool, and the first failure or a request to stop ends it.
//
// Lives on the stack of the thread that calls run(), which returns only when no task of it is left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/cache.hpp"
#include "engine/call.hpp"
#include "engine/plan.hpp"

namespace comfyd::engine {

class Executor {
public:
    // All of them outlive the executor.
    struct Parts {
        const Folders& folders;
        Pool& pool;
        const std::shared_ptr<Memory>& memory;
        Cache& cache;
        Listener& listener;
    };

    Executor(
        Parts parts,
        const Plan& plan,
        const json::object& prompt,
        const json::object& extra_pnginfo,
        std::stop_token stop
    );

    Result<RunResult> run();

private:
    // Nodes of one key: one of them runs, all of them have the result.
    struct Unit {
        std::vector<std::size_t> nodes;  // the first one runs
        std::vector<std::size_t> sources;
        std::vector<std::size_t> consumers;
        std::size_t waiting_for = 0;  // sources without a result
        std::size_t readers = 0;      // consumers that have not run
        bool needed = false;
        SharedResult result;  // dropped when no consumer is left
    };

    void make_units();
    void take_cached();
    void mark_needed();
    void start(std::vector<std::size_t> units);
    void run_chain(std::size_t unit);
    std::vector<std::size_t> complete(std::size_t unit, SharedResult result);
    void show(const Unit& unit, const json::object& ui);
    void fail_run(Error error);
    bool stopped() const;

    Result<SharedResult> run_node(const Unit& unit);
    Result<std::map<std::string, Value, std::less<>>> bind(const PlannedNode& node);
    Result<NodeResult> call_node(const PlannedNode& node);

    Parts parts_;
    const Plan& plan_;
    std::stop_token stop_;
    Surroundings surroundings_;

    std::mutex listener_mutex_;  // held while the listener is called; guards outputs_
    json::object outputs_;

    std::mutex mutex_;  // guards what follows, once tasks run
    std::condition_variable idle_;
    std::vector<Unit> units_;
    std::vector<std::size_t> unit_of_;  // by node
    std::size_t tasks_ = 0;             // posted or running
    std::optional<Error> failure_;
    std::atomic<bool> failed_ = false;
};

}  // namespace comfyd::engine
