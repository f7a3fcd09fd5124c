// What a tenant may have in all, over its jobs and files: how many jobs wait or run, how much GPU
// time and money its jobs have taken in this day and month (UTC), how many bytes it stores. All of
// it is read from what is stored, not from counters that could be lost; what was used is read anew
// after two seconds. Tenants without a limit are asked nothing about. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/lru_map.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/stats.hpp"
#include "limits/book.hpp"

namespace comfyd::limits {

// The reason in the details of a refusal because of usd_per_day or usd_per_month.
inline constexpr std::string_view kMoneyGone = "insufficient_credits";

class Quotas {
public:
    // All may be awaited on any executor.
    struct Sources {
        std::function<Task<std::size_t>(std::string tenant)> unfinished;
        std::function<Task<Result<jobs::Stats>>(jobs::StatsQuery query)> stats;
        std::function<Task<Result<std::uint64_t>>(std::string tenant)> stored_bytes;
        // Whether there is room for more, whoever asks.
        std::function<Result<>()> has_room;
    };
    // All outlive it.
    Quotas(const Book& book, Clock& clock, Sources sources)
        : book_(book), clock_(clock), sources_(std::move(sources)) {}

    // For one more job, which is stored while what this gives is kept. Code::queue_full where it
    // would be one too many, Code::rate_limited for what was used up, until when in "retry_after";
    // Code::storage_full.
    Task<Result<std::shared_ptr<void>>> may_submit(std::string tenant, std::string tier);
    // For a file of so many bytes. Code::storage_full: of all, or of what the tenant may have.
    Task<Result<>> may_store(std::string tenant, std::uint64_t bytes);

    std::uint64_t refused() const { return refused_; }

private:
    struct Spent {
        Time read_at{};
        std::int64_t day = -1;  // since 1970
        double gpu_seconds_day = 0;
        double gpu_seconds_month = 0;
        double usd_day = 0;
        double usd_month = 0;
        double stored_mb = 0;
    };
    // Jobs of a tenant that are about to be stored.
    using OnTheirWay = std::shared_ptr<std::atomic<std::size_t>>;

    Task<Result<std::shared_ptr<void>>> take_place(std::string tenant, double queued_max);
    Task<Result<>> check_spent(std::string tenant, Allowance allowance);
    Task<Result<Spent>> spent(std::string tenant, Allowance allowance);
    OnTheirWay on_their_way(const std::string& tenant);

    static constexpr std::size_t kTenantsMax = 10'000;

    const Book& book_;
    Clock& clock_;
    const Sources sources_;
    std::atomic<std::uint64_t> refused_ = 0;
    Mutex mutex_;
    LruMap<Spent> spent_ COMFYD_GUARDED_BY(mutex_){kTenantsMax};
    LruMap<OnTheirWay> on_their_way_ COMFYD_GUARDED_BY(mutex_){kTenantsMax};
};

}  // namespace comfyd::limits
