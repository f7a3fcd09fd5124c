// The table of leases in memory, by the same contract as in PostgreSQL, for simulations and tests.
// One executor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "cluster/leases.hpp"

namespace comfyd::ledger {

class MemoryLeases final : public cluster::Leases {
public:
    // `clock` is the database's own, and outlives it.
    explicit MemoryLeases(const Clock& clock) : clock_(clock) {}

    Task<Result<std::optional<cluster::Taken>>> take(std::string domain, NodeId node) override;
    Task<Result<>> renew(jobs::Term term, std::uint64_t queued) override;
    Task<Result<>> resign(jobs::Term term) override;
    Task<Result<std::vector<cluster::Lease>>> all() override;

    // The same, for those who have no coroutine.
    std::optional<cluster::Taken> take_now(const std::string& domain, const NodeId& node);
    bool renew_now(const jobs::Term& term, std::uint64_t queued);
    void resign_now(const jobs::Term& term);

    // What a leader writes is asked of this in the same transaction: it leads still.
    bool holds(const jobs::Term& term) const;
    // The database knows that the node's session is gone: nobody waits for its lease to run out.
    void end_session(const NodeId& node);

private:
    struct Row {
        jobs::Term term;
        bool has_session = false;
        Time expires_at = Time::min();
        Time quiet_at = Time::min();
        std::uint64_t queued = 0;
    };

    bool is_free(const Row& row, const NodeId& taker) const;

    const Clock& clock_;
    std::map<std::string, Row> rows_;  // by domain
};

}  // namespace comfyd::ledger
