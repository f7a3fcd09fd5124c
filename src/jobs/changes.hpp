// The one way in which a job of the ledger changes: one change of a job at a time, made again upon
// what another writer has left. While it is under way nobody places the job. Core executor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/job.hpp"
#include "jobs/job_table.hpp"
#include "jobs/ledger.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

class Changes {
public:
    // All outlive it.
    Changes(
        Executor core,
        Ledger& ledger,
        const JobTable& table,
        scheduler::Scheduler& scheduler,
        events::Hub& hub
    )
        : ledger_(ledger), table_(table), scheduler_(scheduler), hub_(hub), done_(core) {}

    // Called with every change that the ledger has, before make() answers.
    void on_committed(std::function<void(const Change&)> callback) {
        committed_ = std::move(callback);
    }
    // Called when a job is in the scheduler's queue again.
    void on_queued(std::function<void()> callback) { queued_ = std::move(callback); }

    // `step` says how a job changes; it is asked with the job as it is in the ledger.
    // Code::conflict: the job's state does not allow it.
    using Step = std::function<Result<Change>(const Job&, std::uint64_t sequence)>;
    Task<Result<Job>> make(JobId id, Step step);

    // Keeps a job from being changed by others and from being placed. REQUIRES: nobody holds it.
    void hold(const JobId& id);
    void release(const JobId& id);
    bool is_held(const JobId& id) const { return held_.contains(id); }
    // Into the scheduler's queue, or for a job that is held, as soon as it is released.
    void queue(const JobId& id, scheduler::JobKeys keys);
    // Out of it, likewise.
    void unqueue(const JobId& id);

private:
    Task<Result<Job>> make_held(JobId id, Step step);
    Task<Result<Job>> read(JobId id);
    void tell(const Change& change);

    Ledger& ledger_;
    const JobTable& table_;
    scheduler::Scheduler& scheduler_;
    events::Hub& hub_;
    std::function<void(const Change&)> committed_;
    std::function<void()> queued_;
    // Those that are held, with the keys of one that is to be queued.
    std::unordered_map<JobId, std::optional<scheduler::JobKeys>> held_;
    Signal done_;
};

}  // namespace comfyd::jobs
