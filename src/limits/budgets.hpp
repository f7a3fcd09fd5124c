// What tenants may spend: holds back the jobs of those whose budget is spent until it begins anew,
// and tells when little of a limit is left and when nothing is, of quotas of money too. What was
// spent is what ended attempts cost, read from the stored sums; which limits were told is a note,
// so that each is told once. Lives on one executor, but for what says otherwise.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "auth/directory.hpp"
#include "autoscale/told_limits.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "jobs/notebook.hpp"
#include "jobs/stats.hpp"
#include "limits/book.hpp"

namespace comfyd::limits {

class Budgets {
public:
    struct Sources {
        std::function<Task<Result<jobs::Stats>>(jobs::StatsQuery query)> stats;
        std::function<Task<>(std::string tenant, autoscale::LimitNews news)> tell;
    };
    // All outlive it.
    Budgets(
        const auth::DirectoryBoard& directory,
        const Book& book,
        const Clock& clock,
        jobs::Notebook& notebook,
        Sources sources
    );

    // Looks at what was spent. `tells`: whether it is ours to tell; of several nodes one does.
    // True: others than before are held back.
    Task<bool> look(bool tells);

    // Why no job of the tenant starts, for people; empty: they do. Any thread.
    std::string hold_of(const std::string& tenant) const;
    // What is left of each budget, where it is tightest, by tenant. Any thread.
    std::map<std::string, double> left_usd() const;

private:
    struct Limits {
        Budget budget{};  // at its end jobs wait
        Budget quota{};   // at its end they are refused
    };
    using AllLimits = std::map<std::string, Limits>;  // by tenant
    // What a tenant has spent. Hours that are over are read once.
    struct Purse {
        autoscale::Spending spent{};
        Time hour{};  // up to which it is counted
        double in_hour = 0;
        double in_day_before = 0;
        double in_month_before = 0;
    };

    AllLimits all_limits() const;
    Task<> count(std::string tenant, std::optional<double> usd_this_hour, Time now);
    Task<bool> read_past(std::string tenant, Time now, Purse& purse);
    bool hold(const AllLimits& limited, Time now);
    Task<> tell(const AllLimits& limited, Time now);
    Task<> recall();
    Task<> save();

    const auth::DirectoryBoard& directory_;
    const Book& book_;
    const Clock& clock_;
    jobs::Notebook& notebook_;
    const Sources sources_;
    std::map<std::string, Purse> purses_;
    std::optional<autoscale::ToldLimits> told_;  // nullopt: it is not known, or another's to tell
    std::string written_;
    mutable Mutex mutex_;
    std::map<std::string, std::string> holds_ COMFYD_GUARDED_BY(mutex_);
    std::map<std::string, double> left_usd_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::limits
