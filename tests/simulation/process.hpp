// One life of the process: the real service over the simulated storage and fleet, and the clients
// who ask it something. Begins by recovering what is stored.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "events/local_hub.hpp"
#include "jobs/service.hpp"
#include "simulation/machines.hpp"
#include "simulation/storage.hpp"
#include "simulation/world.hpp"

namespace comfyd::simulation {

class Process {
public:
    explicit Process(World& world);
    ~Process();  // REQUIRES: has_ended()

    bool is_up() const { return state_ == State::up; }
    bool has_ended() const { return state_ == State::ended && calls_ + watchers_ == 0; }
    // Nobody waits for an answer.
    bool is_quiet() const { return calls_ == 0 && storage_.is_idle(); }

    // Its submit is not answered yet, so that no client can know of it.
    bool is_on_its_way(const JobId& id) const { return submits_.contains(id); }

    // REQUIRES: is_up(). All are answered in their time, and the answers are looked at.
    void submit(jobs::Spec spec);
    void cancel(const JobId& id, bool only_waiting);
    void retry(const JobId& id);
    void look_at(const JobId& id);
    void watch(const JobId& id, std::uint64_t since);
    void count();

    void stop(Millis grace);
    // It dies: nothing of it reaches the outside any more.
    void die();

    jobs::Service& service() { return service_; }
    Storage& storage() { return storage_; }
    Fleet& fleet() { return fleet_; }

private:
    enum class State { starting, up, stopping, ended };

    void spawn(Task<> task, int& count);
    void call(Task<> task) { spawn(std::move(task), calls_); }
    std::string tenant_of(const JobId& id) const;
    Task<> recover();
    Task<> run_stop(Millis grace);
    Task<> run_submit(jobs::Spec spec);
    Task<> run_cancel(JobId id, bool only_waiting, int revivals);
    Task<> run_retry(JobId id);
    Task<> run_look_at(JobId id);
    Task<> run_watch(JobId id, std::uint64_t since);
    Task<> run_count();
    Task<> run_follow(std::shared_ptr<events::Feed> feed, Rules::Listener& listener);

    World& world_;
    Storage storage_;
    Fleet fleet_;
    events::LocalHub hub_;
    jobs::Service service_;
    State state_ = State::starting;
    bool is_dead_ = false;
    std::set<JobId> submits_;  // that are not answered yet
    int calls_ = 0;
    int watchers_ = 0;
};

}  // namespace comfyd::simulation
