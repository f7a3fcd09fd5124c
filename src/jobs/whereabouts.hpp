// Moves jobs from place to place: the one writer of the table, which takes a job out of whatever
// held it where it was (queue, worker, alarm, leader) before it stands elsewhere. Core executor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "jobs/alarms.hpp"
#include "jobs/changes.hpp"
#include "jobs/job_table.hpp"
#include "jobs/placement.hpp"
#include "jobs/ranking.hpp"
#include "jobs/reuse.hpp"

namespace comfyd::jobs {

class Whereabouts {
public:
    // All outlive it.
    Whereabouts(
        Clock& clock,
        JobTable& table,
        Changes& changes,
        Placement& placement,
        Alarms& alarms,
        const Ranking& ranking
    )
        : clock_(clock),
          table_(table),
          changes_(changes),
          placement_(placement),
          alarms_(alarms),
          ranking_(ranking) {}

    // Called with every job that waits from now on, and what it needs.
    void on_waiting(std::function<void(const Job&, const Requirement&)> callback) {
        waits_ = std::move(callback);
    }

    // Called when one stands in the queue from now on.
    void on_ready(std::function<void()> callback) { ready_ = std::move(callback); }

    // To where a job of its state waits: for its time, behind one that does the same, in the queue.
    void put_back(const Job& job, scheduler::ProfilePtr profile, std::uint64_t content = 0);
    void make_ready(const JobId& id, scheduler::JobKeys keys);
    void make_attempting(std::shared_ptr<Attempt> attempt);
    // After a restart: it runs already, and those that do the same wait for it.
    void lead_running(const Job& job);
    void remember_deadline(const Job& job);
    void forget(const JobId& id);

    // Whom it waits for; nullopt: for nobody.
    std::optional<JobId> leader_of(const JobId& id) const { return coalescing_.followed_by(id); }
    // The leader ended, with outputs for all of them or without: then the first of them leads.
    std::vector<Coalescing::Follower> end_lead(const JobId& leader) {
        return coalescing_.end(leader);
    }
    std::optional<Coalescing::Follower> pass_on_lead(const JobId& leader) {
        return coalescing_.pass_on(leader);
    }

private:
    void queue_up(const Job& job, scheduler::JobKeys keys);
    void make_following(const Job& job, scheduler::JobKeys keys);
    void make_retry_waiting(const Job& job, scheduler::JobKeys keys);
    // The leader waits in the queue, and from now on for the job.
    void overtake(const JobId& leader, const Job& job);
    // Out of what holds it in its place.
    void leave(const JobId& id);

    Clock& clock_;
    JobTable& table_;
    Changes& changes_;
    Placement& placement_;
    Alarms& alarms_;
    const Ranking& ranking_;
    Coalescing coalescing_;
    std::function<void(const Job&, const Requirement&)> waits_;
    std::function<void()> ready_;
};

}  // namespace comfyd::jobs
