#include "jobs/stats.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace comfyd::jobs {
namespace {

constexpr std::array<std::pair<std::string_view, StatsGroup>, 4> kGroups{{
    {"tenant", StatsGroup::tenant},
    {"workflow", StatsGroup::workflow},
    {"worker", StatsGroup::worker},
    {"hour", StatsGroup::hour},
}};

void count_end(const Job& job, Totals& into) {
    switch (job.state) {
        case State::completed:
            into.completed = 1;
            break;
        case State::failed:
            into.failed = 1;
            break;
        case State::cancelled:
            into.cancelled = 1;
            break;
        case State::expired:
            into.expired = 1;
            break;
        case State::queued:
        case State::running:
        case State::retry_waiting:
            return;
    }
    if (const auto queued = job.queue_time()) {
        into.queued.add(*queued);
    }
    if (const auto ran = job.execution_time()) {
        into.ran.add(*ran);
    }
}

std::string group_key(StatsGroup group, const StatsKey& key) {
    switch (group) {
        case StatsGroup::tenant:
            return key.tenant;
        case StatsGroup::workflow:
            return key.workflow;
        case StatsGroup::worker:
            return key.worker;
        case StatsGroup::hour:
            return to_rfc3339(key.hour);
        case StatsGroup::none:
            break;
    }
    return {};
}

}  // namespace

void Totals::add(const Totals& other) {
    completed += other.completed;
    failed += other.failed;
    cancelled += other.cancelled;
    expired += other.expired;
    retries += other.retries;
    images += other.images;
    model_loads += other.model_loads;
    gpu += other.gpu;
    model_load += other.model_load;
    inference += other.inference;
    cost_usd += other.cost_usd;
    queued.add(other.queued);
    ran.add(other.ran);
}

Time hour_of(Time time) {
    return std::chrono::floor<std::chrono::hours>(time);
}

std::optional<StatsEntry> stats_of(const Change& change) {
    const Job& job = change.job;
    const bool is_retry = change.event.type == EventType::retrying;
    if (!is_terminal(job.state) && !is_retry && !change.used) {
        return std::nullopt;
    }
    StatsEntry entry;
    entry.key = {hour_of(change.event.at), job.tenant, job.workflow_id, job.worker};
    Totals& totals = entry.totals;
    count_end(job, totals);
    totals.retries = is_retry ? 1 : 0;
    if (change.used) {
        totals.images = static_cast<std::uint64_t>(change.used->images);
        totals.model_loads = static_cast<std::uint64_t>(change.used->model_loads);
        totals.gpu = change.used->gpu;
        totals.model_load = change.used->model_load;
        totals.inference = change.used->inference;
        totals.cost_usd = change.used->cost_usd;
    }
    return entry;
}

std::string_view to_string(StatsGroup group) {
    for (const auto& [name, value] : kGroups) {
        if (value == group) {
            return name;
        }
    }
    return {};
}

std::optional<StatsGroup> parse_stats_group(std::string_view text) {
    for (const auto& [name, value] : kGroups) {
        if (name == text) {
            return value;
        }
    }
    return std::nullopt;
}

void StatsSum::add(const StatsKey& key, const Totals& totals) {
    stats_.totals.add(totals);
    if (group_by_ == StatsGroup::none) {
        return;
    }
    std::string group = group_key(group_by_, key);
    const auto found = groups_.find(group);
    if (found != groups_.end()) {
        found->second.add(totals);
    } else if (groups_.size() < kStatsGroupsMax) {
        groups_.emplace(std::move(group), totals);
    } else {
        stats_.is_cut = true;
    }
}

Stats StatsSum::take() {
    for (auto& [key, totals] : groups_) {
        stats_.groups.push_back({key, totals});
    }
    groups_.clear();
    if (group_by_ != StatsGroup::hour) {
        std::ranges::sort(stats_.groups, [](const auto& a, const auto& b) {
            return std::tuple(b.totals.gpu, b.totals.jobs(), std::string_view(a.key)) <
                   std::tuple(a.totals.gpu, a.totals.jobs(), std::string_view(b.key));
        });
    }
    return std::exchange(stats_, {});
}

}  // namespace comfyd::jobs
