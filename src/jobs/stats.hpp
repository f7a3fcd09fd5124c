// Sums over ended jobs: how many, how they ended, how long they took, what they used. The ledger
// keeps them by hour, tenant, workflow and worker, and adds to them whatever each change of a job
// brings, in the same transaction. Plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "jobs/durations.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

struct Totals {
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t expired = 0;
    std::uint64_t retries = 0;  // attempts that were followed by another one
    std::uint64_t images = 0;
    std::uint64_t model_loads = 0;
    Millis gpu{};
    Millis model_load{};
    Millis inference{};
    double cost_usd = 0;
    Durations queued;  // of jobs that got a worker
    Durations ran;     // likewise, their latest attempt

    std::uint64_t jobs() const { return completed + failed + cancelled + expired; }
    void add(const Totals& other);
    bool operator==(const Totals&) const = default;
};

// Whose totals they are, and of which hour.
struct StatsKey {
    Time hour{};  // its beginning
    std::string tenant;
    std::string workflow;  // the job's workflow_id
    std::string worker;    // of the attempt; empty: the job never had one

    auto operator<=>(const StatsKey&) const = default;
};
Time hour_of(Time time);

struct StatsEntry {
    StatsKey key;
    Totals totals;
};
// What a change adds; nullopt: nothing.
std::optional<StatsEntry> stats_of(const Change& change);

enum class StatsGroup { none, tenant, workflow, worker, hour };
std::string_view to_string(StatsGroup group);
std::optional<StatsGroup> parse_stats_group(std::string_view text);

// Whole hours: from the one that `from` lies in to the one that `to` lies in.
struct StatsQuery {
    std::optional<std::string> tenant;  // nullopt: all
    Time from{};
    Time to{};
    StatsGroup group_by = StatsGroup::none;
};

inline constexpr std::size_t kStatsGroupsMax = 1'000;

struct Stats {
    Totals totals;
    struct Group {
        std::string key;  // of hours: their beginning, as text
        Totals totals;
    };
    // Hours in their order, others with the most GPU time first.
    std::vector<Group> groups;
    bool is_cut = false;  // there were more groups; the totals count them
};

// Adds up entries; what is outside of the query is the caller's to leave out.
class StatsSum {
public:
    explicit StatsSum(StatsGroup group_by) : group_by_(group_by) {}
    void add(const StatsKey& key, const Totals& totals);
    Stats take();

private:
    StatsGroup group_by_;
    Stats stats_;
    std::map<std::string, Totals, std::less<>> groups_;
};

}  // namespace comfyd::jobs
