// Jobs in memory, by the same contract as on disk, for simulations and tests. Nothing of it
// outlives the process, and nobody but jobs is kept: no assets, and of deliveries only that there
// are some. One executor.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "jobs/ledger.hpp"

namespace comfyd::ledger {

class MemoryLedger final : public jobs::Ledger {
public:
    // `clock` outlives it.
    explicit MemoryLedger(Clock& clock) : clock_(clock) {}

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override;
    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override;
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override;
    Task<Result<>> commit(jobs::Change change) override;
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override;
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override;
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override;
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override;
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override;
    Task<Result<std::optional<jobs::Stamp>>> stamp(JobId id) override;
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override;
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override;
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override;
    Task<Result<jobs::Purged>> purge(Time before, int limit) override;
    Task<Result<>> discard(JobId id) override;

    // What is stored, by id.
    struct Entry {
        jobs::Job job;
        jobs::Spec spec;
        std::vector<jobs::Event> events;
        bool tells = false;         // something is to be delivered
        std::uint64_t arrival = 0;  // the transaction that accepted it, or revived it last
    };
    const std::map<JobId, Entry>& entries() const { return entries_; }

    // Transactions are numbered as they begin; some are committed later than others that began
    // after them.
    std::uint64_t begin();
    Task<Result<jobs::Accepted>> accept_in(std::uint64_t transaction, jobs::NewJob job);
    // No transaction before it is under way.
    std::uint64_t oldest_under_way() const;

    // Another writer has changed the row: who does not read it again is refused.
    void touch(const JobId& id) { entries_.at(id).job.revision += 1; }

private:
    struct Key {
        JobId job;
        std::string request_hash;
        Time created_at;
    };

    std::optional<jobs::Accepted> find_holder(const std::string& tenant, const std::string& key);
    static void note(Entry& entry, const jobs::Event& event);
    Result<> change(Entry& entry, const jobs::Change& change);
    Result<jobs::Accepted> store(std::uint64_t transaction, jobs::NewJob job);
    void count(jobs::StatsEntry entry);
    void erase(const JobId& id);

    Clock& clock_;
    std::map<JobId, Entry> entries_;
    std::uint64_t latest_transaction_ = 0;
    std::set<std::uint64_t> under_way_;
    std::map<std::pair<std::string, std::string>, Key> keys_;  // by tenant and key
    std::map<jobs::StatsKey, jobs::Totals> totals_;
    std::map<std::pair<Time, std::string>, std::set<std::string>> workflows_;  // by hour and tenant
};

}  // namespace comfyd::ledger
