// The port of a place that workers come from: the configuration, the machines that comfyd keeps
// (fleet/instances/kept_pools.hpp). A provider adds workers to the fleet and removes them, at any
// time from begin() to end().
#pragma once

#include <string>
#include <vector>

#include "base/task.hpp"
#include "fleet/callers.hpp"
#include "fleet/options.hpp"

namespace comfyd::fleet {

class Fleet;

// Core executor only. The fleet outlives it.
class WorkerProvider {
public:
    virtual ~WorkerProvider() = default;
    // Adds the workers that there are; others may follow. A failure says what is wrong with what it
    // was told.
    virtual Result<> begin(Fleet& fleet) = 0;
    // Adds those that it had before a restart; then the jobs that they run are brought back.
    virtual Task<> recall();
    // They are: from now on workers may be taken out, too.
    virtual void start() {}
    // Ends what it does in the background. Its workers stay in the fleet.
    virtual Task<> end() = 0;
};

// Servers that the operator named: there from the beginning to the end. Those that call
// (`worker://NAME`) are let in for as long.
class ConfiguredWorkers final : public WorkerProvider {
public:
    // `callers` outlives it; null: nobody can call.
    explicit ConfiguredWorkers(std::vector<WorkerConfig> workers, Callers* callers = nullptr)
        : workers_(std::move(workers)), callers_(callers) {}

    Result<> begin(Fleet& fleet) override;
    Task<> recall() override;
    Task<> end() override;

private:
    std::vector<WorkerConfig> workers_;
    Callers* callers_;
    std::vector<std::string> let_in_;
};

// Engines of our own, as many as the operator wants.
class EngineChildren final : public WorkerProvider {
public:
    explicit EngineChildren(std::vector<EngineConfig> engines) : engines_(std::move(engines)) {}

    Result<> begin(Fleet& fleet) override;
    Task<> end() override;

private:
    std::vector<EngineConfig> engines_;
};

}  // namespace comfyd::fleet
