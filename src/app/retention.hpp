// Removes what is older than it is promised to be kept: ended jobs with all that is stored of them,
// uploads that have expired, files that nothing refers to any more, and what the embedded engine
// left in its folders (docs/operations.md).
//
// Owned by the application; lives on one executor, which is not the core's. Works in small steps,
// each of which lets writes of others go first.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "assets/store.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/ledger.hpp"
#include "jobs/reuse.hpp"

namespace comfyd::app {

class Retention {
public:
    struct Removed {
        int jobs = 0;
        int files = 0;  // and records of uploads
    };
    struct Options {
        Millis kept_for;  // a job from its end on, an engine's file
        std::vector<std::filesystem::path> engine_folders{};  // each with input, output and temp
        std::function<void(const Removed&)> tell{};  // of every round that removed something
        // Whether a round is due here; empty: always. Of nodes that share all of it, one does it.
        std::function<bool()> is_ours{};
    };
    // All outlive it.
    Retention(
        Executor executor,
        Clock& clock,
        Pool& pool,
        jobs::Ledger& ledger,
        assets::Store& assets,
        Options options
    );

    // A round now and then, until stop(). On the executor.
    void start();
    Task<> stop();

    // One round, to its end.
    Task<Result<Removed>> sweep();

private:
    Task<> keep_sweeping();
    Task<Result<int>> purge(Time before);

    Clock& clock_;
    Pool& pool_;
    jobs::Ledger& ledger_;
    assets::Store& assets_;
    Options options_;
    bool is_failing_ = false;  // the ledger could not write in the latest round
    TaskGroup tasks_;
};

// Whether all of a job's outputs are there still, for whoever wants to use them again. The store
// outlives it.
jobs::OutputsKept outputs_kept_in(assets::Store& assets);

}  // namespace comfyd::app
