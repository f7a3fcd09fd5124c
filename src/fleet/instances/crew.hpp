// What the keeper asks of workers and of the fleet: whether a machine can serve, and to take it on
// or let it go. A port of its own so that the keeper can be tried without machines; over the real
// fleet it is FleetCrew (fleet/instances/fleet_crew.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "fleet/instances/instance.hpp"
#include "fleet/options.hpp"

namespace comfyd::fleet {

// What a machine was ordered with.
struct Promise {
    std::uint64_t gpu_memory_bytes = 0;  // 0: nothing was said, likewise the next
    std::uint64_t disk_bytes = 0;
    bool has_gpu = false;  // whatever its memory
};

struct Examination {
    enum class Verdict {
        not_yet,  // look again
        wrong,    // it never will serve
        good,
    };

    Verdict verdict = Verdict::not_yet;
    std::string why{};
    std::string gpu{};  // its own name for the GPU; empty: it told none
    // An agent answers there that fetches models, whether its ComfyUI is there or not.
    bool fetches_models = false;
    std::uint64_t disk_free_bytes = 0;  // as that agent tells; 0: it does not
};

// Core executor only.
class Crew {
public:
    virtual ~Crew() = default;
    // ComfyUI answers there, and has what was promised.
    virtual Task<Examination> examine(WorkerConfig worker, Promise promise) = 0;
    // Runs a workflow there to its end. Code::worker_rejected, Code::node_execution_error: it
    // cannot; others: it may, later.
    virtual Task<Result<>> warm_up(WorkerConfig worker, std::string workflow, Millis patience) = 0;

    virtual Result<> employ(WorkerConfig worker) = 0;
    // It gets nothing more. What it runs may end within `patience`, and then is given back.
    virtual Task<Result<>> dismiss(std::string worker, Millis patience) = 0;
    // It gets nothing more, and stays.
    virtual void drain(const std::string& worker) = 0;
    // All that are kept, whenever one of them may have changed: those that are not workers yet are
    // shown as such.
    virtual void show(const std::vector<Instance>& instances) { static_cast<void>(instances); }
    // Why no machine is started for jobs that wait, by pool, in place of what was said before.
    virtual void hinder(std::map<std::string, std::string> why) { static_cast<void>(why); }
    virtual bool answers(const std::string& worker) const = 0;
    // Jobs that it runs.
    virtual std::size_t jobs(const std::string& worker) const = 0;
};

}  // namespace comfyd::fleet
