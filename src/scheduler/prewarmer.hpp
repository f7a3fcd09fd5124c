// Which models idle workers load ahead of jobs. Pure, like the scheduler, whose view it asks: the
// server and the simulator run the same code. One owner.
//
// What a further worker with the models of a kind is worth is how much loading it spares in the
// next minutes: jobs that are expected, times the load, times the chance that such a job finds all
// the others that have them at work. A worker loads what is worth most, where that is more than the
// load itself takes and than what it would have to give up is worth. It has idled at least as long
// as the load takes. Pinned models are loaded somewhere as long as a worker idles.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/kind_rates.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::scheduler {

class Prewarmer {
public:
    static constexpr Millis kLook{5'000};  // between two looks

    // Names of model files, as profiles have them or without what stands before the first slash.
    void pin(std::set<std::string> models) { pinned_ = std::move(models); }
    void set_rates(KindRates rates) { rates_ = std::move(rates); }

    void arrived(const ProfilePtr& profile, Time now) { rates_.arrived(profile, now); }
    bool knows(const std::string& kind) const { return rates_.knows(kind); }
    // Jobs of this kind are not loaded for until more of them come.
    void forget(const std::string& kind) { rates_.forget(kind); }

    struct Order {
        std::string worker;
        ProfilePtr profile;
        double load_s = 0;  // expected
    };
    // What shall be loaded now, by workers that can; for the scheduler it is there at once. Nothing
    // within kLook of the latest look.
    using CanLoad = std::function<bool(const std::string& worker)>;
    std::vector<Order> look(Scheduler& scheduler, Time now, const CanLoad& can_load = {});
    Time next_look() const { return next_look_; }
    // The worker is done with its order, or it was called back. Where it failed, it gets none for a
    // while.
    void ended(const std::string& worker, bool has_failed, Time now);

private:
    struct Kind {
        double worth_s = 0;  // of the first copy
        double busy = 0;     // jobs of it that run at a time, on average
        bool is_pinned = false;
        std::size_t copies = 0;
    };
    double worth_s(const Kind& kind, std::size_t copies) const;
    double loss_s(const std::vector<Kind>& kinds, std::uint64_t gone) const;
    bool is_pinned(const Profile& profile) const;
    struct Choice {
        std::size_t worker = 0;
        std::size_t kind = 0;
        double gain_s = 0;
    };
    Choice choose(const Warmth& warmth, const std::vector<Kind>& kinds, Time now) const;

    KindRates rates_;
    std::set<std::string> pinned_;
    std::set<std::string> at_work_;        // workers with an order
    std::map<std::string, Time> resting_;  // workers, until when
    Time next_look_{};
};

}  // namespace comfyd::scheduler
