// The embedded engine as a worker of the fleet. Owned by the Fleet; core executor only. It is
// always up and its node classes never change.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "fleet/engine_attempt.hpp"
#include "jobs/fleet.hpp"
#include "workflow/catalogue.hpp"

namespace comfyd::fleet {

struct EngineConfig {
    std::string id = "engine";
    engine::Folders folders;  // the engine's own
    int slots = 1;            // runs at once
    std::string pool = "default";
    // The process before this one did not end in order: what it ran here may be why.
    bool process_died = false;
    TenantFolders tenants{};
};

class EngineWorker final : public jobs::Worker {
public:
    EngineWorker(
        EngineConfig config,
        engine::Core& engine,
        Executor core,
        const Clock& clock,
        assets::Store& store,
        Pool& disk,
        std::function<void()> changed
    );

    void set_draining(bool draining);
    bool is_draining() const { return draining_; }
    std::shared_ptr<const workflow::NodeClasses> classes() const { return classes_; }

    jobs::WorkerInfo info() const override;
    const std::string& id() const override { return config_.id; }
    bool available() const override;
    bool can_run(const std::string& requirement) const override;
    double load() const override;
    std::size_t running() const override { return attempts_.size(); }
    std::string abilities() const override { return "engine"; }
    Task<Result<jobs::AttemptResult>> run(
        jobs::Assignment assignment, jobs::AttemptListener& listener, jobs::StopRequest& stop
    ) override;
    Task<Result<std::string>> read_file(JobId job, jobs::WorkerFile file, std::uint64_t bytes_max)
        override;
    // The engine's input folder holds the file.
    Task<bool> has_input(std::string name);
    Task<Result<>> free_memory(bool models, bool results) override;

private:
    // Holds the place of an attempt from the call of run() to its end.
    class Seat {
    public:
        Seat(EngineWorker& worker, const EngineAttempt* attempt);
        ~Seat();
        Seat(Seat&& other) noexcept;
        Seat& operator=(Seat&&) = delete;

    private:
        EngineWorker* worker_;
        const EngineAttempt* attempt_;
    };

    Task<Result<jobs::AttemptResult>> run_attempt(
        std::unique_ptr<EngineAttempt> attempt, Seat seat
    );

    EngineConfig config_;
    const Clock& clock_;
    std::function<void()> changed_;
    std::shared_ptr<const workflow::NodeClasses> classes_;
    std::set<const EngineAttempt*> attempts_;  // each lives in its run()
    bool draining_ = false;
    Time created_at_;
    Time last_active_at_;
    std::uint64_t completed_ = 0;
    std::uint64_t failed_ = 0;
    Pool threads_;
    EngineLink link_;
};

}  // namespace comfyd::fleet
