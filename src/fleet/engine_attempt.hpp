// One try of a job on the embedded engine. Owned by EngineWorker::run for its length; core executor
// only, but for the engine's own work, which runs on the worker's threads.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "assets/store.hpp"
#include "base/pool.hpp"
#include "engine/core.hpp"
#include "fleet/inputs.hpp"
#include "fleet/outputs.hpp"
#include "fleet/progress.hpp"
#include "fleet/tenant_folders.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::fleet {

// Results stay where the engine wrote them for a while, because its cache may name them again.
class KeptFiles {
public:
    // Remembers a file; a file that is remembered already keeps its age.
    void add(std::string path);
    // The oldest ones that are too many; they are forgotten.
    std::vector<std::string> take_excess();

private:
    std::deque<std::string> by_age_;
    std::unordered_set<std::string> known_;
};

// What the attempts on one engine share. Owned by the worker, which outlives them.
struct EngineLink {
    Executor core;
    engine::Core& engine;
    engine::Folders folders;
    TenantFolders tenants;
    assets::Store& store;
    Pool& disk;     // short work
    Pool& threads;  // whole runs
    KeptFiles kept_files;
};

class EngineAttempt {
public:
    EngineAttempt(
        EngineLink& link,
        jobs::Assignment assignment,
        jobs::AttemptListener& listener,
        jobs::StopRequest& stop
    );

    Task<Result<jobs::AttemptResult>> run();
    const jobs::Assignment& assignment() const { return assignment_; }
    // Where a file lies that the run has told of; nullopt: it has not.
    std::optional<std::filesystem::path> find_made(const jobs::WorkerFile& file) const;
    // After run(), with what it returned.
    void tell_usage(const Result<jobs::AttemptResult>& result);

private:
    class Relay;

    Task<> execute();
    Task<Result<jobs::AttemptResult>> attempt();
    Task<Result<>> place_inputs(json::object& prompt);
    Task<Result<jobs::AttemptResult>> collect(json::object outputs);
    Task<Result<jobs::Output>> store_item(const UiItem& item);
    Task<> forget_old_files();
    std::filesystem::path path_of(const comfy::FileName& file) const;
    assets::NewAsset new_asset(const UiItem& item) const;
    Error stop_error(Code why) const;

    EngineLink& link_;
    jobs::Assignment assignment_;
    jobs::AttemptListener& listener_;
    jobs::StopRequest& stop_;
    const engine::Owner owner_;
    std::shared_ptr<Relay> relay_;  // shared with the engine's threads while they run
    std::stop_source engine_stop_;
    std::optional<Result<jobs::AttemptResult>> result_;
    const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
};

}  // namespace comfyd::fleet
