// A ComfyUI machine: runs what it is sent, each prompt for a while. With a fence it refuses leaders
// that were, and prompts that it knows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "simulation/leases/agenda.hpp"
#include "simulation/leases/breaks.hpp"
#include "simulation/leases/rules.hpp"

namespace comfyd::simulation {

class Machine {
public:
    enum class Answer { runs, known, lower_epoch };
    enum class Place { absent, there, done };

    Machine(std::string name, bool has_fence, Break broken)
        : name_(std::move(name)),
          has_fence_(has_fence),
          refuses_(has_fence && broken != Break::no_fence_in_worker) {}

    const std::string& name() const { return name_; }
    bool has_fence() const { return has_fence_; }

    Answer post(const Sent& sent, Time now, Millis run_time, LeaseRules& rules) {
        rules.on_arrived(sent, now);
        if (refuses_ && sent.term.epoch < epoch_) {
            return Answer::lower_epoch;
        }
        epoch_ = std::max(epoch_, sent.term.epoch);
        if (refuses_ && ends_.contains(sent.job)) {
            return Answer::known;
        }
        rules.on_run(name_, has_fence_, sent);
        ends_[sent.job] = now + run_time;
        return Answer::runs;
    }
    // False: it has heard of a higher one.
    bool announce(std::uint64_t epoch) {
        if (epoch < epoch_) {
            return false;
        }
        epoch_ = epoch;
        return true;
    }
    Place find(int job, Time now) const {
        const auto found = ends_.find(job);
        if (found == ends_.end()) {
            return Place::absent;
        }
        return found->second <= now ? Place::done : Place::there;
    }

    bool is_reachable = true;
    int cuts = 0;  // of its connections: what was on its way is lost

private:
    std::string name_;
    bool has_fence_;
    bool refuses_;
    std::uint64_t epoch_ = 0;
    std::map<int, Time> ends_;  // of prompts, by job
};

}  // namespace comfyd::simulation
