// Machines that run prompts, and how one process sees them. Machines outlive the process: what was
// sent to one runs on there when comfyd dies, and is found again under its prompt id. They vanish,
// restart, hang, refuse and say what is not so, as chance has it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/virtual_time.hpp"
#include "jobs/cause.hpp"
#include "jobs/fleet.hpp"
#include "simulation/chance.hpp"
#include "simulation/journal.hpp"
#include "simulation/rules.hpp"

namespace comfyd::simulation {

// How a run ends that does not end well.
struct Ending {
    Code code = Code::internal;
    std::optional<jobs::Cause> cause{};  // nullopt: as the code says
    bool breaks_machine = false;         // it answers from then on, and runs nothing more
    bool gives_back = false;             // nothing is wrong with the job; the worker leaves
};

struct Prompt {
    std::set<JobId> jobs;
    Time ends_at;
    std::optional<Ending> failure;  // how it ends; nullopt: well
    bool is_given_up = false;       // comfyd has been told that it is lost
};

struct Machine {
    std::string id;
    std::string classes;          // node classes that it has, a letter each
    std::set<std::string> files;  // models that it has
    bool has_agent = false;       // which brings it more of them
    int slots = 1;
    bool merges = false;
    bool is_reachable = true;
    bool is_broken = false;   // quarantined: it gets nothing until it was started anew
    bool is_listed = true;    // part of the fleet
    bool is_leaving = false;  // it gets nothing more, and leaves the fleet when it has none left
    std::map<std::string, Prompt> prompts;
    std::set<std::string> kept_apart;  // ids of shared prompts whose jobs run alone
};

class Machines {
public:
    Machines(const Clock& clock, Rules& rules, Chance& chance, Journal& journal);

    // From now on everything goes well.
    void heal();
    bool is_healed() const { return is_healed_; }

    // Begins to run it, with what becomes of it decided.
    void begin(Machine& machine, const std::string& prompt_id, std::set<JobId> jobs);
    // Whatever runs it breaks.
    std::set<JobId> poison;
    // Its run ends with an error that another one may not have, always.
    std::set<JobId> failing;

    std::vector<Machine> all;
    const Clock& clock;
    Rules& rules;
    Chance& chance;
    Journal& journal;

private:
    bool is_healed_ = false;
};

class Worker;

class Fleet final : public jobs::Fleet {
public:
    Fleet(Machines& machines, Executor core);
    ~Fleet() override;

    std::vector<std::shared_ptr<jobs::Worker>> workers() const override;
    std::shared_ptr<jobs::Worker> find(const std::string& id) const override;
    void on_change(OnChange callback) override { on_change_ = std::move(callback); }

    // A machine has changed, or somebody says so: runs look again, and the process is told.
    void tell(const std::string& worker);
    // Part of the fleet, or not any more. One that comes back is another worker to the process.
    void list(Machine& machine, bool is_listed);
    void look_again();
    void tell_all();
    // The process dies.
    void cut();
    bool is_cut() const { return is_cut_; }

private:
    std::vector<std::shared_ptr<Worker>> workers_;  // the latest of each machine
    std::vector<std::shared_ptr<Worker>> retired_;
    Machines& machines_;
    Executor core_;
    OnChange on_change_;
    bool is_cut_ = false;
};

}  // namespace comfyd::simulation
