// Who decides in a simulation what runs where. The real scheduler under each of its policies, and
// rules of others to compare it with. One owner; times are milliseconds since the start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/estimates.hpp"
#include "simulate/gpu_types.hpp"
#include "simulate/trace.hpp"

namespace comfyd::simulate {

// What a worker does next: a run of a job and those that ride along, or only the loading of a
// profile's models.
struct Action {
    std::uint32_t worker = 0;
    std::uint32_t profile = 0;
    std::vector<std::uint32_t> jobs;  // empty: only load
};

class Policy {
public:
    virtual ~Policy() = default;
    // A job came, or came back after it failed on these workers.
    virtual void add(std::uint32_t job, const std::vector<std::uint32_t>& failed_on) = 0;
    // nullopt: nothing should start now. The worker counts as busy from now on.
    virtual std::optional<Action> next(std::int64_t now_ms) = 0;
    // When to ask again even if nothing happens.
    virtual std::optional<std::int64_t> wake_at() const = 0;
    // The worker is free again. `gpu_seconds`: of each of the jobs.
    virtual void finished(const Action& action, double gpu_seconds, std::int64_t now_ms) = 0;
    // Told when it is free. A worker that was down has nothing loaded.
    virtual void set_up(std::uint32_t worker, bool up) = 0;
    virtual std::size_t waiting() const = 0;

    // What free workers shall load ahead of jobs; they still count as free.
    virtual std::vector<Action> prewarm(std::int64_t now_ms) {
        static_cast<void>(now_ms);
        return {};
    }
    // When to ask that again; nullopt: never.
    virtual std::optional<std::int64_t> prewarms_at() const { return std::nullopt; }
    // That load has ended, or a job began instead.
    virtual void prewarmed(std::uint32_t worker, std::int64_t now_ms) {
        static_cast<void>(worker), static_cast<void>(now_ms);
    }
};

// What every policy is made with; all of it outlives the policy.
struct Scene {
    const Trace& trace;
    const Fleet& fleet;
    const scheduler::Estimates& estimates;
    int merge_max = 1;
    bool prewarms = false;  // of the scheduler's own policies
    std::set<std::string> pinned{};
};

// "finish-time", "score", "fifo": the scheduler's own; "no-results": the first of them, which is
// not told which jobs do the same. "pressure": SwarmUI's rule, under which a free backend takes a
// request whose model it has, and else loads the model with the highest pressure, 10 x waiting
// requests + age of the oldest in seconds. nullptr: no such policy.
std::unique_ptr<Policy> make_policy(std::string_view name, const Scene& scene);
std::vector<std::string> policy_names();
// The scheduler's own may have idle workers load models ahead of jobs.
bool may_prewarm(std::string_view policy);

// The id by which a worker of the fleet is known to the scheduler.
std::string worker_id(const Fleet& fleet, std::uint32_t worker);

}  // namespace comfyd::simulate
