// What is loaded where, and models that are brought there ahead of jobs.
#include "base/assert.hpp"
#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {
namespace {

std::uint64_t bit(std::size_t kind) {
    return std::uint64_t(1) << kind;
}

}  // namespace

Warmth Scheduler::Impl::warmth(const std::vector<ProfilePtr>& kinds, Time now) {
    COMFYD_ASSERT(kinds.size() <= Warmth::kKindsMax);
    Warmth warmth;
    std::vector<Index> profiles;
    for (const ProfilePtr& kind : kinds) {
        const Index profile = profiles_.intern(kind);
        const Index anchor = profiles_[profile].anchor;
        Warmth::Kind& told = warmth.kinds.emplace_back();
        told.run_s = profiles_.expected(profile, profiles_.usual_type()).run_s;
        for (const Index model : profiles_[profile].models) {
            told.load_s += profiles_.load_s(model, profiles_.usual_type(), {});
        }
        for (const WaitClass wait_class : kInOrder) {
            told.waiting += anchor == 0 ? 0 : order_.in_turn(wait_class, anchor).jobs;
        }
        profiles.push_back(profile);
    }
    const std::vector<std::uint64_t> included = kinds_in(profiles);
    for (Index worker = 0; worker < machines_.count(); ++worker) {
        if (machines_[worker].live && machines_[worker].state.available) {
            warmth.workers.push_back(warmth_of(worker, profiles, included, now));
        }
    }
    for (const Index profile : profiles) {
        profiles_.release(profile);
    }
    return warmth;
}

// Of each kind, those that need nothing but what it needs.
std::vector<std::uint64_t> Scheduler::Impl::kinds_in(const std::vector<Index>& kinds) const {
    std::vector<std::uint64_t> included(kinds.size());
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const std::vector<Index>& wanted = profiles_[kinds[kind]].models;
        for (std::size_t other = 0; other < kinds.size(); ++other) {
            const bool is_in =
                std::ranges::all_of(profiles_[kinds[other]].models, [&](Index model) {
                    return std::ranges::count(wanted, model) > 0;
                });
            included[kind] |= is_in ? bit(other) : 0;
        }
    }
    return included;
}

Warmth::Worker Scheduler::Impl::warmth_of(
    Index worker,
    const std::vector<Index>& kinds,
    const std::vector<std::uint64_t>& included,
    Time now
) const {
    const Machines::Machine& machine = machines_[worker];
    Warmth::Worker told{machine.state.id};
    told.idle = machines_.idle_for(machine, now);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        const bool is_loaded = std::ranges::all_of(profiles_[kinds[kind]].models, [&](Index model) {
            return machines_.has_model(machine, model);
        });
        told.loaded |= is_loaded ? bit(kind) : 0;
    }
    for (std::size_t kind = 0; told.idle && kind < kinds.size(); ++kind) {
        const bool can = machines_.can_run(machine, kinds[kind]);
        told.load_s.push_back(can ? machines_.load_s(machine, kinds[kind]) : -1);
        std::uint64_t then = included[kind];
        for (std::size_t other = 0; can && other < kinds.size(); ++other) {
            const bool is_loaded = (told.loaded & bit(other)) != 0;
            const bool stays =
                is_loaded && machines_.would_keep(machine, kinds[kind], kinds[other]);
            then |= stays ? bit(other) : 0;
        }
        told.then_loaded.push_back(then);
    }
    return told;
}

void Scheduler::Impl::warm(const std::string& id, const ProfilePtr& profile) {
    const auto worker = machines_.find(id);
    if (!worker) {
        return;
    }
    const Index at = profiles_.intern(profile);
    for (const Index anchor : machines_.warm(*worker, at)) {
        order_.unblock_anchor(anchor);
    }
    profiles_.release(at);
    worker_changed(*worker);
}

}  // namespace comfyd::scheduler
