// What the scheduler ranks a job by: its priority by what is known now, its tenant, what it needs.
// Core executor.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"
#include "jobs/ledger.hpp"
#include "jobs/tenants.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

// The profile of a job; where none was made, one that says what the job requires and no more.
scheduler::ProfilePtr known_profile(scheduler::ProfilePtr profile, const Requirement& requirement);

// For scheduler::JobKeys; the same in one process only.
std::uint64_t content_of(const Spec& spec);

class Ranking {
public:
    // Both outlive it.
    Ranking(Clock& clock, scheduler::Scheduler& scheduler) : clock_(clock), scheduler_(scheduler) {}

    // Without classifying, jobs keep the priority that was asked for. May be called again: what
    // is not named any more is as if it had never been.
    void set_tenants(const std::map<std::string, TenantOptions>& tenants, bool classify);
    void set_terms_of(TermsOf terms) { terms_of_ = std::move(terms); }
    // What tenants with a quota have used in the hours before this start. `ledger` outlives it.
    Task<> recall_usage(Ledger& ledger);
    void add_used(const Job& job, Time at, const Usage& used);

    scheduler::JobKeys keys_of(const Job& job, scheduler::ProfilePtr profile) const;

private:
    Clock& clock_;
    scheduler::Scheduler& scheduler_;
    std::optional<Tenants> tenants_;  // nullopt: jobs are not classified
    std::set<std::string> named_;     // tenants whose terms the scheduler was told
    TermsOf terms_of_;
};

}  // namespace comfyd::jobs
