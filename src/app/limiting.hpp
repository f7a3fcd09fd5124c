// How much each may ask, as the program has it: the book of who may what, the limits of requests
// and addresses, the quotas, the budgets, and the look at the disk. Owned by the application.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.hpp"
#include "auth/directory.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "jobs/service.hpp"
#include "ledger/storage.hpp"
#include "limits/address_guard.hpp"
#include "limits/book.hpp"
#include "limits/budgets.hpp"
#include "limits/quotas.hpp"
#include "limits/rate_limiter.hpp"
#include "limits/redis_meter.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

class Limiting {
public:
    // All outlive it.
    struct Parts {
        Executor executor;  // on which it looks at the disk and at sums, and talks to Redis
        Executor core;      // of the service
        Clock& clock;
        Pool& pool;
        const Config& config;
        const auth::DirectoryBoard& directory;
        jobs::Service& service;
        ledger::Storage& ledger;
        std::vector<std::filesystem::path> folders;  // whose disks must not be full
        std::function<bool()> is_ours{};  // whether this node tells of budgets; empty: always
    };
    // Code::config_invalid.
    static Result<std::unique_ptr<Limiting>> make(Parts parts);

    limits::RateLimiter& rates() { return rates_; }
    limits::AddressGuard& addresses() { return addresses_; }
    limits::Quotas& quotas() { return quotas_; }

    // For the scheduler. Any thread.
    jobs::TenantOptions terms_of(const std::string& tenant, const std::string& token_tier) const;
    std::map<std::string, jobs::TenantOptions> all_terms() const;

    // Whose jobs are held back is known then. Any executor, before start().
    Task<> open();
    // On its executor.
    void start();
    Task<> stop();
    // Any thread.
    Result<> has_room() const;
    void collect(observe::Metrics::Gauges& gauges) const;

private:
    Limiting(Parts parts, std::unique_ptr<limits::RedisMeter> shared);
    Task<> keep_looking();
    Task<> keep_counting();
    Task<bool> look_at_budgets();
    Task<> tell(std::string tenant, autoscale::LimitNews news);
    Task<> count_nodes();

    const Parts p_;
    limits::Book book_;
    std::unique_ptr<limits::RedisMeter> shared_;  // nullptr: this node is alone
    limits::RateLimiter rates_;
    limits::AddressGuard addresses_;
    limits::Quotas quotas_;
    limits::Budgets budgets_;
    std::atomic<bool> is_disk_full_ = false;
    TaskGroup tasks_;
};

}  // namespace comfyd::app
