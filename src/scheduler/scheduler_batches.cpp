// Which jobs share a run: how many ride along, and when it pays to wait for them.
#include <algorithm>

#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {
namespace {

// Workers with the model of a job that are looked at for who takes the others like it.
constexpr int kSharersLookedAt = 16;
// A worker that is free within this part of a job's run shares what waits.
constexpr double kSoon = 0.5;
constexpr std::size_t kArrivalsKept = 4'096;

}  // namespace

// As many as the worker can take, its GPU's memory is expected to hold, and is worth it.
std::size_t Scheduler::Impl::batched_max(const Match& match) const {
    const Machines::Machine& machine = machines_[match.worker];
    if (!machine.state.merges) {
        return 0;
    }
    const ProfileTable::Expected& expected = profiles_.expected(match.profile, machine.type);
    auto limit = static_cast<std::size_t>(expected.batch_max - 1);
    if (machine.state.vram_bytes > 0 && expected.batched_bytes > 0) {
        const std::uint64_t may_take = profiles_[match.profile].memory_part > 0
                                           ? match.numbers.vram_needed
                                           : match.numbers.vram_free;
        const std::uint64_t spare =
            may_take > expected.vram_bytes ? may_take - expected.vram_bytes : 0;
        limit = std::min(limit, static_cast<std::size_t>(spare / expected.batched_bytes));
    }
    return limit;
}

// GPUs with workers that would take jobs of this kind now or soon, that of the match included.
std::size_t Scheduler::Impl::gpus_for(const Match& match, Time now) const {
    const Index anchor = profiles_[match.profile].anchor;
    std::vector<Index> gpus{machines_[match.worker].gpu};
    const auto add = [&](Index worker) {
        const Machines::Machine& machine = machines_[worker];
        if (machine.state.merges && machines_.can_run(machine, match.profile) &&
            std::find(gpus.begin(), gpus.end(), machine.gpu) == gpus.end()) {
            gpus.push_back(machine.gpu);
        }
    };
    int looked_at = 0;
    for (const auto& [load, since, worker] : machines_.free_with(anchor)) {
        if (++looked_at > kSharersLookedAt) {
            break;
        }
        add(worker);
    }
    const double soon_s =
        kSoon * profiles_.expected(match.profile, machines_[match.worker].type).run_s;
    for (const auto& [ends, worker] : machines_.busy_with(anchor)) {
        if (++looked_at > kSharersLookedAt ||
            machines_.remaining_s(machines_[worker], now) > soon_s) {
            break;
        }
        add(worker);
    }
    return gpus.size();
}

std::vector<JobId> Scheduler::Impl::pick_batched(const Match& match, Time now) {
    const std::size_t limit = batched_max(match);
    if (limit == 0) {
        return {};
    }
    // A larger batch takes longer, so nobody rides along past a higher class that waits.
    WaitClass lowest = WaitClass::batch;
    for (const WaitClass wait_class : kInOrder) {
        if (order_.in_turn(wait_class).jobs > 0) {
            lowest = wait_class;
            break;
        }
    }
    const std::size_t gpus = gpus_for(match, now);
    std::vector<JobId> batched = order_.alike(match.profile, lowest, (1 + limit) * gpus - 1);
    // The last ones are shared, so that all GPUs are done with them at about the same time.
    const std::size_t share = (1 + batched.size() + gpus - 1) / gpus;
    batched.resize(std::min({batched.size(), limit, share - 1}));
    return batched;
}

void Scheduler::Impl::note_arrival(const JobId& job, const JobKeys& keys) {
    if (options_.gather <= Millis(0)) {
        return;
    }
    // Nobody waits for a batch while others wait for the worker.
    for (const Index group : gathering_) {
        order_.unblock(group);
    }
    gathering_.clear();
    if (!keys.profile->can_be_merged) {
        return;
    }
    if (arrivals_.size() >= kArrivalsKept) {
        arrivals_.clear();
    }
    Arrivals& arrivals = arrivals_[order_.profile_of(job)];
    if (job != arrivals.latest_job && keys.queued_at >= arrivals.latest) {
        arrivals = Arrivals{job, keys.queued_at, arrivals.latest, true, arrivals.gathers_until};
    }
}

// From when they come into the queue: until then they were on their way to the disk, together.
std::optional<Time> Scheduler::Impl::gathers_until(const Order::Head& head, Time now) {
    const Index profile = order_.group(head.group).profile;
    const auto found = arrivals_.find(profile);
    if (found == arrivals_.end() ||
        found->second.latest - found->second.before >= options_.gather) {
        return std::nullopt;
    }
    Arrivals& arrivals = found->second;
    const bool is_fresh = now - order_.queued_at(head.turn.job.job) < 2 * options_.gather;
    if (arrivals.is_new && is_fresh && now >= arrivals.gathers_until) {
        arrivals.gathers_until = now + options_.gather;
    }
    arrivals.is_new = false;
    const auto enough =
        static_cast<std::size_t>(profiles_.expected(profile, profiles_.usual_type()).batch_max);
    const std::size_t alike = order_.alike(profile, WaitClass::batch, enough).size();
    const bool others_wait = order_.size() > alike;
    // One that is further away was set before the clock was set back.
    const bool is_gathering =
        now < arrivals.gathers_until && arrivals.gathers_until <= now + options_.gather;
    return is_gathering && alike < enough && !others_wait ? std::optional(arrivals.gathers_until)
                                                          : std::nullopt;
}

}  // namespace comfyd::scheduler
