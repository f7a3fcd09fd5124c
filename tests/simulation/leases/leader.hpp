// What a leader does, as far as leases matter: writes down that a job is started, looks at its
// trust, sends the prompt, and writes down its end. Jobs that an earlier leader had started it
// finds on their workers, or sends again when that is safe.
#pragma once

#include <memory>
#include <set>

#include "base/task.hpp"
#include "simulation/leases/node.hpp"

namespace comfyd::simulation {

class Leader {
public:
    Leader(Node& node, cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust);

    // Returns when nothing more is done under its term.
    Task<> stop();

private:
    Task<> look_for_jobs();
    Task<> drive(JobRow job);
    Task<bool> start(JobRow job);
    Task<> run_on(Machine& machine, int job, bool is_new);
    // The machine did not have it; `was_quiet`: when it was asked no earlier leader could send any
    // more.
    Task<bool> may_send_again(Machine& machine, bool was_quiet);
    Task<> send(Machine& machine, int job);
    Task<> end(int job);

    Node& node_;
    LeaseWorld& world_;
    jobs::Term term_;
    Time quiet_at_;
    std::shared_ptr<const cluster::Trust> trust_;
    std::set<int> known_;
    bool is_over_ = false;
    TaskGroup tasks_;
};

}  // namespace comfyd::simulation
