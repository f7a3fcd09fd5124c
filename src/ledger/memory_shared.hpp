// A ledger in memory that several nodes share, by the same contract as in PostgreSQL, for
// simulations and tests. One executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jobs/shared_ledger.hpp"
#include "ledger/memory_leases.hpp"
#include "ledger/memory_ledger.hpp"

namespace comfyd::ledger {

class MemoryShared final : public jobs::SharedLedger {
public:
    // Both outlive it.
    MemoryShared(MemoryLedger& ledger, const MemoryLeases& leases)
        : ledger_(ledger), leases_(leases) {}

    std::unique_ptr<jobs::Ledger> under(jobs::Term term) override;
    Task<Result<jobs::ArrivalPage>> arrivals(
        std::string domain, jobs::ArrivalCursor after, int limit, jobs::IsKnown is_known
    ) override;
    Task<Result<>> wish(jobs::Wish wish) override;
    Task<Result<std::vector<jobs::Wish>>> wishes(std::string domain, int limit) override;
    Task<Result<>> drop_wishes(std::vector<std::int64_t> ids) override;
    Task<Result<std::vector<JobId>>> advanced(std::vector<jobs::Heard> heard) override;

private:
    MemoryLedger& ledger_;
    const MemoryLeases& leases_;
    std::map<std::int64_t, jobs::Wish> wishes_;  // by id
    std::int64_t latest_wish_ = 0;
};

}  // namespace comfyd::ledger
