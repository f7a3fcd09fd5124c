// One schedule: clients, machines, storage, crashes and time do something at random, and the rules
// are looked at after every step. In the end everything heals, and every job must come to its end.
// All that happens depends on the seed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/process.hpp"
#include "simulation/world.hpp"

namespace comfyd::simulation {

class Schedule {
public:
    Schedule(std::uint64_t seed, bool keeps_journal);
    ~Schedule();

    // What was not as it must be; nullopt: all went well.
    std::optional<std::string> run();

private:
    void act();
    void act_as_client();
    void act_on_machine();
    void act_on_storage();
    void act_on_process();
    void pass_time();

    // Runs what can run, or a part of it.
    void go_on();
    void go_on_until_idle();
    void check();
    void finish();

    void start_process();
    // Everything of it must come to its end within a moment.
    void kill_process();
    bool is_up() const { return process_ && process_->is_up(); }
    bool have_all_ended() const;

    jobs::Spec make_spec();

    World world_;
    std::vector<JobId> jobs_;           // that were submitted
    std::unique_ptr<Process> process_;  // null: it is down
};

}  // namespace comfyd::simulation
