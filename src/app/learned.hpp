// Keeps what the program has learned of run times, loads, memory and nodes over a restart, and
// lends a copy of it to threads that plan workflows. Owned by the application. Lives on the core
// executor, but for past(), which any thread may call.
//
// Written down at most every half a minute, when there is something new, and at the end; what a
// crash loses is learned again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "fleet/node_costs.hpp"
#include "jobs/notebook.hpp"
#include "scheduler/predictor.hpp"
#include "workflow/plan/plan.hpp"

namespace comfyd::app {

class Learned {
public:
    // All outlive it.
    Learned(
        Executor core,
        Pool& pool,
        jobs::Notebook& notebook,
        scheduler::Predictor& predictor,
        fleet::NodeCosts& node_costs
    );

    // Reads what was written down, and starts to write. Failures are only logged.
    Task<> start();
    // Reads it again, in place of what is known here: another node has written since.
    Task<> recall();
    // Lends and writes what is new. REQUIRES: start() has returned.
    Task<> stop();

    // What is known of such runs, on the type of GPU of which most is known. A second or two old,
    // more where very much is known.
    std::optional<workflow::PastDuration> past(
        const workflow::Graph& graph, const workflow::Plan& plan
    ) const;

private:
    Task<> keep();
    Task<> save();
    Task<> lend_news();
    Task<> lend_copy();
    void lend(std::shared_ptr<const scheduler::Predictor> copy);
    Task<std::optional<json::object>> read(std::string name);

    Executor core_;
    Pool& pool_;
    jobs::Notebook& notebook_;
    scheduler::Predictor& predictor_;
    fleet::NodeCosts& node_costs_;
    TaskGroup tasks_;
    std::uint64_t saved_ = 0;  // learned() of both when they were written last
    std::uint64_t lent_ = 0;   // of the predictor when it was lent last
    mutable Mutex mutex_;
    std::shared_ptr<const scheduler::Predictor> copy_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::app
