// The domains that other nodes lead, as this one asks after them: over the bus where the leader
// answers; a cancel is written down for it otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "cluster/leases.hpp"
#include "cluster/mail.hpp"
#include "jobs/leader.hpp"
#include "jobs/shared_ledger.hpp"

namespace comfyd::cluster {

class OtherLeaders final : public jobs::Elsewhere {
public:
    // How often it looks who leads.
    static constexpr Millis kLookEvery{1'000};

    // All outlive it.
    struct Parts {
        Executor core;
        jobs::Ledger& ledger;
        jobs::SharedLedger& shared;
        Leases& leases;
        Mail& mail;
    };
    explicit OtherLeaders(const Parts& parts);
    ~OtherLeaders() override;

    // On the core, like those below.
    void start();
    Task<> stop();
    // Nodes that lead something, without this one.
    std::set<NodeId> nodes() const;

    void tell_of_arrival(const std::string& domain) override;
    std::size_t queued() const override { return queued_.load(std::memory_order_relaxed); }

    Task<Result<>> cancel(jobs::LedJob job, jobs::Cancel how) override;
    Task<std::optional<jobs::Forecast::Live>> live(jobs::LedJob job) override;
    Task<std::optional<jobs::Waiting>> explain(jobs::LedJob job) override;
    Task<Result<std::string>> read_output(
        jobs::LedJob job, jobs::WorkerFile file, std::uint64_t bytes_max
    ) override;
    Task<std::optional<jobs::Load>> load(std::string domain) override;
    Task<std::vector<jobs::WorkerInfo>> workers() override;
    Task<> free_idle_workers(bool models, bool results) override;

private:
    Task<> look();
    void note(const std::vector<Lease>& leases);
    // On the core. Code::lead_lost: no node is known to lead it, or it leads no more.
    Task<Result<json::value>> ask_leader(
        std::string domain, std::string question, json::object details, Millis patience
    );
    Task<std::vector<json::value>> ask_all(std::string question, json::object details);
    Task<Result<>> cancel_by_wish(jobs::LedJob job, jobs::Cancel how);
    // nullopt: it is not known yet.
    Task<std::optional<Result<>>> outcome(JobId id, jobs::Cancel how);

    Parts p_;
    std::map<std::string, NodeId> leaders_;  // by domain
    std::atomic<std::size_t> queued_{0};
    TaskGroup tasks_;
};

}  // namespace comfyd::cluster
