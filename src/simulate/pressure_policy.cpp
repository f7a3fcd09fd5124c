#include "simulate/pressure_policy.hpp"

namespace comfyd::simulate {
namespace {

constexpr std::int64_t kYoungMs = 1'500;

}  // namespace

PressurePolicy::PressurePolicy(const Scene& scene)
    : trace_(scene.trace), backends_(scene.fleet.size()) {
    std::map<std::string, std::uint32_t> known;
    for (std::uint32_t at = 0; at < trace_.profiles.size(); ++at) {
        std::string names;
        for (const scheduler::Model& model : trace_.profiles[at].profile->models) {
            names += model.name + "\n";
        }
        const auto [entry, is_new] =
            known.emplace(std::move(names), static_cast<std::uint32_t>(kinds_.size()));
        if (is_new) {
            kinds_.emplace_back().profile = at;
        }
        kind_of_profile_.push_back(entry->second);
    }
    for (std::uint32_t worker = 0; worker < backends_.size(); ++worker) {
        release(worker);
    }
}

void PressurePolicy::add(std::uint32_t job, const std::vector<std::uint32_t>& failed_on) {
    static_cast<void>(failed_on);
    const std::uint32_t at = kind_of_profile_[trace_.jobs[job].profile];
    Kind& kind = kinds_[at];
    if (kind.jobs.empty()) {
        kind.first_at_ms = trace_.jobs[job].at_ms;
        wanted_.insert(at);
    }
    kind.jobs.insert(job);
    order_.insert(job);
}

std::optional<Action> PressurePolicy::next(std::int64_t now_ms) {
    wake_at_.reset();
    // A second round, from the start, sees those that the first has passed by.
    for (int round = 0; round < 2 && !order_.empty() && !free_.empty(); ++round) {
        const auto request = order_.lower_bound(looked_at_);
        if (request != order_.end()) {
            const std::uint32_t job = *request;
            const std::uint32_t kind = kind_of_profile_[trace_.jobs[job].profile];
            looked_at_ = job + 1;
            if (!kinds_[kind].free.empty()) {
                return run(kind, job);
            }
            if (auto load = load_highest(now_ms)) {
                return load;
            }
            // Nothing can be loaded for those behind it either.
            if (const auto warm = next_warm(looked_at_)) {
                looked_at_ = *warm + 1;
                return run(kind_of_profile_[trace_.jobs[*warm].profile], *warm);
            }
        }
        looked_at_ = 0;
    }
    looked_at_ = 0;
    return std::nullopt;
}

std::optional<Action> PressurePolicy::load_highest(std::int64_t now_ms) {
    const std::uint32_t highest = highest_pressure(now_ms);
    if (highest == kNone) {
        return std::nullopt;
    }
    Kind& kind = kinds_[highest];
    if (now_ms - kind.first_at_ms <= kYoungMs && free_.size() > 1) {
        wake_at_ = kind.first_at_ms + kYoungMs + 1;
        return std::nullopt;
    }
    for (const auto& [released, worker] : free_) {
        if (backends_[worker].kind != highest) {
            const Action load{worker, kind.profile, {}};
            take(load.worker);
            backends_[load.worker].kind = highest;
            kind.loading = true;
            return load;
        }
    }
    return std::nullopt;
}

// The first request from this one on whose model a free backend has.
std::optional<std::uint32_t> PressurePolicy::next_warm(std::uint32_t from) const {
    std::optional<std::uint32_t> first;
    for (const auto& [released, worker] : free_) {
        if (backends_[worker].kind == kNone) {
            continue;
        }
        const std::set<std::uint32_t>& jobs = kinds_[backends_[worker].kind].jobs;
        const auto found = jobs.lower_bound(from);
        if (found != jobs.end() && (!first || *found < *first)) {
            first = *found;
        }
    }
    return first;
}

std::uint32_t PressurePolicy::highest_pressure(std::int64_t now_ms) const {
    std::uint32_t highest = kNone;
    std::int64_t most = -1;
    for (const std::uint32_t at : wanted_) {
        const Kind& kind = kinds_[at];
        const std::int64_t pressure =
            static_cast<std::int64_t>(kind.jobs.size()) * 10 + (now_ms - kind.first_at_ms) / 1000;
        if (!kind.loading && pressure > most) {
            most = pressure;
            highest = at;
        }
    }
    return highest;
}

Action PressurePolicy::run(std::uint32_t kind, std::uint32_t job) {
    const std::uint32_t worker = kinds_[kind].free.begin()->second;
    take(worker);
    order_.erase(job);
    kinds_[kind].jobs.erase(job);
    if (kinds_[kind].jobs.empty()) {
        wanted_.erase(kind);
    }
    return Action{worker, trace_.jobs[job].profile, {job}};
}

void PressurePolicy::take(std::uint32_t worker) {
    const Backend& backend = backends_[worker];
    free_.erase({backend.released_ms, worker});
    if (backend.kind != kNone) {
        kinds_[backend.kind].free.erase({backend.released_ms, worker});
    }
}

void PressurePolicy::release(std::uint32_t worker) {
    const Backend& backend = backends_[worker];
    free_.emplace(backend.released_ms, worker);
    if (backend.kind != kNone) {
        kinds_[backend.kind].free.emplace(backend.released_ms, worker);
    }
}

void PressurePolicy::finished(const Action& action, double gpu_seconds, std::int64_t now_ms) {
    static_cast<void>(gpu_seconds);
    Backend& backend = backends_[action.worker];
    if (action.jobs.empty()) {
        kinds_[backend.kind].loading = false;
    }
    backend.released_ms = now_ms;
    release(action.worker);
}

void PressurePolicy::set_up(std::uint32_t worker, bool up) {
    Backend& backend = backends_[worker];
    if (!up) {
        take(worker);
        backend.kind = kNone;
    } else {
        release(worker);
    }
    backend.up = up;
}

}  // namespace comfyd::simulate
