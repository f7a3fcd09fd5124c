// Has idle workers load models ahead of jobs: which ones says scheduler::Prewarmer, what to load a
// workflow of a job that ran. No job waits for it: a worker that loads takes jobs, and one that
// needs other models calls it back. What fails concerns no job. Core executor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/task.hpp"
#include "jobs/fleet.hpp"
#include "jobs/ledger.hpp"
#include "scheduler/prewarmer.hpp"

namespace comfyd::jobs {

struct PrewarmOptions {
    bool is_on = false;
    std::set<std::string> pinned{};  // models, as scheduler::Prewarmer::pin() takes them
};

// What is known of past jobs: how often those of a kind come, and one of each that ran.
struct PastKinds {
    scheduler::KindRates rates;
    std::map<std::string, JobId> samples;  // by scheduler::kind_of()
};

class Warming {
public:
    // All outlive it.
    struct Parts {
        Clock& clock;
        Ledger& ledger;
        Fleet& fleet;
        scheduler::Scheduler& scheduler;
        TaskGroup& tasks;
        const bool& is_stopping;
    };
    explicit Warming(const Parts& parts) : p_(parts) {}

    void set(const PrewarmOptions& options);
    // In place of what is known here.
    void remember(PastKinds kinds);
    void completed(const JobId& job, const scheduler::ProfilePtr& profile);
    // A job goes to the worker.
    void placed(const std::string& worker, const scheduler::Profile& profile);
    // That loads now what such jobs need; nullopt: none.
    std::optional<std::string> worker_loading(const scheduler::Profile& profile) const;
    // "loaded", "called_back", "timeout" or "failed".
    using OnEnded = std::function<void(std::string_view outcome)>;
    void on_ended(OnEnded callback) { on_ended_ = std::move(callback); }

private:
    Task<> keep_looking();
    Task<> warm(scheduler::Prewarmer::Order order);
    Task<Result<>> bring(const scheduler::Prewarmer::Order& order, std::string kind);

    Parts p_;
    scheduler::Prewarmer prewarmer_;
    std::map<std::string, JobId> samples_;        // by kind
    std::map<std::string, std::string> at_work_;  // kinds, by worker
    std::set<std::string> has_job_;               // workers at work to which a job went meanwhile
    bool is_on_ = false;
    bool is_looking_ = false;
    OnEnded on_ended_;
};

}  // namespace comfyd::jobs
