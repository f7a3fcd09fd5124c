#include "simulation/leases/rules.hpp"

#include <algorithm>

namespace comfyd::simulation {

void LeaseRules::on_taken(const jobs::Term& term, Millis wait, Millis wait_max, Time quiet_at) {
    takes_ += 1;
    longest_wait_ = std::max(longest_wait_, wait);
    if (!leaders_.empty() && term.epoch <= leaders_.rbegin()->first) {
        break_one("epoch " + std::to_string(term.epoch) + " was taken after a higher one");
    }
    if (wait > wait_max) {
        break_one(
            "nobody took the lead for " + std::to_string(wait.count()) + " ms, where " +
            std::to_string(wait_max.count()) + " ms are enough"
        );
    }
    leaders_[term.epoch] = {term.node, quiet_at};
}

void LeaseRules::on_written(const jobs::Term& term) {
    const auto& [epoch, leader] = *leaders_.rbegin();
    if (term.epoch != epoch || term.node != leader.node) {
        break_one(
            "something was written under epoch " + std::to_string(term.epoch) + ", when " +
            std::to_string(epoch) + " was taken"
        );
    }
}

void LeaseRules::on_arrived(const Sent& sent, Time now) {
    const auto next = leaders_.upper_bound(sent.term.epoch);
    if (next != leaders_.end() && now > next->second.quiet_at && !sent.after_pause) {
        break_one(
            "job " + std::to_string(sent.job) + " was sent under epoch " +
            std::to_string(sent.term.epoch) + ", which should be quiet"
        );
    }
}

void LeaseRules::on_run(const std::string& worker, bool has_fence, const Sent& sent) {
    auto& runs = runs_[{worker, sent.job}];
    bool is_excused = sent.after_pause;
    for (const Sent& before : runs) {
        is_excused = is_excused || before.after_pause;
    }
    runs.push_back(sent);
    if (runs.size() == 1) {
        return;
    }
    if (has_fence || !is_excused) {
        break_one("job " + std::to_string(sent.job) + " ran twice on " + worker);
    }
    excused_ += 1;
}

void LeaseRules::on_ended(int job) {
    ends_[job] += 1;
    if (ends_[job] > 1) {
        break_one("job " + std::to_string(job) + " has ended twice");
    }
}

}  // namespace comfyd::simulation
