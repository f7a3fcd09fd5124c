#include "scheduler/prewarmer.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace comfyd::scheduler {
namespace {

constexpr std::size_t kKindsMax = 16;   // that are looked at, the most wanted ones
constexpr std::size_t kOrdersMax = 8;   // of one look, which a thread waits for
constexpr double kAhead_s = 600;        // for which rates are taken to hold
constexpr double kPinnedWorth_s = 1e6;  // more than anything that is expected
constexpr Millis kIdleLeast{2'000};
constexpr std::chrono::minutes kRest{10};  // of a worker whose load failed

// That at least so many run at a time, where so many do on average and each came by chance.
double chance_of_at_least(std::size_t many, double average) {
    double fewer = 0;
    double term = std::exp(-average);
    for (std::size_t i = 0; i < many; ++i) {
        fewer += term;
        term *= average / static_cast<double>(i + 1);
    }
    return std::max(0.0, 1 - fewer);
}

bool has(std::uint64_t kinds, std::size_t kind) {
    return ((kinds >> kind) & 1U) != 0;
}

}  // namespace

bool Prewarmer::is_pinned(const Profile& profile) const {
    return std::ranges::any_of(profile.models, [this](const Model& model) {
        const auto slash = model.name.find('/');
        return pinned_.contains(model.name) ||
               (slash != std::string::npos && pinned_.contains(model.name.substr(slash + 1)));
    });
}

// Of the last of so many copies.
double Prewarmer::worth_s(const Kind& kind, std::size_t copies) const {
    if (copies == 0) {
        return 0;
    }
    return kind.worth_s * chance_of_at_least(copies - 1, kind.busy) +
           (kind.is_pinned && copies == 1 ? kPinnedWorth_s : 0);
}

double Prewarmer::loss_s(const std::vector<Kind>& kinds, std::uint64_t gone) const {
    double loss_s = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        loss_s += has(gone, kind) ? worth_s(kinds[kind], kinds[kind].copies) : 0;
    }
    return loss_s;
}

Prewarmer::Choice Prewarmer::choose(const Warmth& warmth, const std::vector<Kind>& kinds, Time now)
    const {
    Choice best;
    for (std::size_t at = 0; at < warmth.workers.size(); ++at) {
        const Warmth::Worker& worker = warmth.workers[at];
        const auto rest = resting_.find(worker.id);
        const bool is_resting = rest != resting_.end() && now < rest->second;
        if (!worker.idle || is_resting || at_work_.contains(worker.id)) {
            continue;
        }
        for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
            const double load_s = worker.load_s[kind];
            const double idle_s = std::chrono::duration<double>(*worker.idle).count();
            if (load_s <= 0 || *worker.idle < kIdleLeast || idle_s < load_s) {
                continue;
            }
            const double gain_s = worth_s(kinds[kind], kinds[kind].copies + 1) -
                                  loss_s(kinds, worker.loaded & ~worker.then_loaded[kind]) - load_s;
            if (gain_s > best.gain_s) {
                best = {at, kind, gain_s};
            }
        }
    }
    return best;
}

std::vector<Prewarmer::Order> Prewarmer::look(
    Scheduler& scheduler, Time now, const CanLoad& can_load
) {
    std::vector<Order> orders;
    const bool was_set_back = next_look_ > now + kLook;  // the clock
    if (now < next_look_ && !was_set_back) {
        return orders;
    }
    next_look_ = now + kLook;
    std::vector<ProfilePtr> profiles;
    std::vector<Kind> kinds;
    std::vector<KindRates::Wanted> all = rates_.wanted(now);
    std::ranges::sort(all, {}, [this](const KindRates::Wanted& wanted) {
        return std::tuple(!is_pinned(*wanted.profile), -wanted.per_s, wanted.kind);
    });
    all.resize(std::min(all.size(), kKindsMax));
    for (KindRates::Wanted& wanted : all) {
        Kind& kind = kinds.emplace_back();
        kind.busy = wanted.per_s;
        kind.is_pinned = is_pinned(*wanted.profile);
        profiles.push_back(std::move(wanted.profile));
    }
    Warmth warmth = scheduler.warmth(profiles, now);
    for (Warmth::Worker& worker : warmth.workers) {
        if (worker.idle && can_load && !can_load(worker.id)) {
            worker.idle.reset();
        }
    }
    for (std::size_t at = 0; at < kinds.size(); ++at) {
        const Warmth::Kind& known = warmth.kinds[at];
        Kind& kind = kinds[at];
        const double expected = kind.busy * kAhead_s + static_cast<double>(known.waiting);
        kind.worth_s = expected * known.load_s;
        kind.busy *= known.run_s;
        kind.copies = static_cast<std::size_t>(std::ranges::count_if(
            warmth.workers, [at](const Warmth::Worker& worker) { return has(worker.loaded, at); }
        ));
    }
    for (Choice best = choose(warmth, kinds, now); best.gain_s > 0 && orders.size() < kOrdersMax;
         best = choose(warmth, kinds, now)) {
        Warmth::Worker& worker = warmth.workers[best.worker];
        const std::uint64_t then = worker.then_loaded[best.kind];
        for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
            kinds[kind].copies += has(then, kind) ? 1 : 0;
            kinds[kind].copies -= has(worker.loaded, kind) ? 1 : 0;
        }
        worker.loaded = then;
        at_work_.insert(worker.id);
        scheduler.warm(worker.id, profiles[best.kind]);
        orders.push_back({worker.id, profiles[best.kind], worker.load_s[best.kind]});
    }
    return orders;
}

void Prewarmer::ended(const std::string& worker, bool has_failed, Time now) {
    at_work_.erase(worker);
    std::erase_if(resting_, [now](const auto& rest) { return rest.second <= now; });
    if (has_failed) {
        resting_[worker] = now + kRest;
    }
}

}  // namespace comfyd::scheduler
