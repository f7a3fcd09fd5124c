// What must hold in a cluster whatever is stopped, cut or killed. Told of what happens by those to
// whom it happens: the database and the workers, never by a leader.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/leases.hpp"

namespace comfyd::simulation {

// A prompt on its way to a worker.
struct Sent {
    int job = 0;
    jobs::Term term;
    bool after_pause = false;  // its sender was stopped between the look at its trust and the send
};

class LeaseRules {
public:
    const std::optional<std::string>& broken() const { return broken_; }
    void break_one(std::string how) {
        if (!broken_) {
            broken_ = std::move(how);
        }
    }

    // The lead was taken, so long after it could be; earlier leaders are quiet then.
    void on_taken(const jobs::Term& term, Millis wait, Millis wait_max, Time quiet_at);
    // Something was written under this term.
    void on_written(const jobs::Term& term);
    void on_arrived(const Sent& sent, Time now);
    // A worker has begun to run it.
    void on_run(const std::string& worker, bool has_fence, const Sent& sent);
    void on_ended(int job);

    // Prompts that ran twice on a worker without a fence, as a stop in the wrong moment lets them.
    int excused() const { return excused_; }
    int takes() const { return takes_; }
    Millis longest_wait() const {
        return longest_wait_;
    }  // for a leader, while nothing was in its way

private:
    std::optional<std::string> broken_;
    struct Leader {
        NodeId node;
        Time quiet_at;
    };
    std::map<std::uint64_t, Leader> leaders_;                        // by epoch
    std::map<std::pair<std::string, int>, std::vector<Sent>> runs_;  // by worker and job
    std::map<int, int> ends_;                                        // by job
    int excused_ = 0;
    int takes_ = 0;
    Millis longest_wait_{0};
};

}  // namespace comfyd::simulation
