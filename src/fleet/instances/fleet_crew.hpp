// The crew over the real fleet: looks at a machine by its agent and its ComfyUI, and takes it on as
// a worker. Owned by KeptPools; core executor only, the requests themselves run on an io thread.
#pragma once

#include <string>

#include "base/pool.hpp"
#include "fleet/fleet.hpp"
#include "fleet/instances/crew.hpp"

namespace comfyd::fleet {

class FleetCrew final : public Crew {
public:
    // All outlive it.
    FleetCrew(Fleet& fleet, Lane lane, Pool& pool, comfy::ClientTimeouts timeouts)
        : fleet_(fleet), lane_(lane), pool_(pool), timeouts_(timeouts) {}

    Task<Examination> examine(WorkerConfig worker, Promise promise) override;
    Task<Result<>> warm_up(WorkerConfig worker, std::string workflow, Millis patience) override;
    Result<> employ(WorkerConfig worker) override;
    Task<Result<>> dismiss(std::string worker, Millis patience) override;
    void drain(const std::string& worker) override;
    void show(const std::vector<Instance>& instances) override;
    void hinder(std::map<std::string, std::string> why) override;
    bool answers(const std::string& worker) const override;
    std::size_t jobs(const std::string& worker) const override;

private:
    Task<Examination> examine_there(WorkerConfig worker, Promise promise);
    Task<Result<>> warm_up_there(WorkerConfig worker, std::string workflow, Millis patience);

    Fleet& fleet_;
    Lane lane_;
    Pool& pool_;
    comfy::ClientTimeouts timeouts_;
};

// What an agent tells of its machine, as GET /worker/v1/status does. Pure.
struct AgentStatus {
    std::string state;  // starting, ready, restarting, failed, draining
    std::string reason;
    std::uint64_t gpu_memory_bytes = 0;  // of the smallest; 0: it told none
    std::uint64_t disk_free_bytes = 0;   // likewise
    std::string gpu;                     // of the first
    bool fetches_models = false;

    static std::optional<AgentStatus> read(std::string_view text);
};
// Whether a machine has what was promised, and serves; `vram_total` is what its ComfyUI says.
Examination judge(const AgentStatus& status, std::uint64_t vram_total, const Promise& promise);

}  // namespace comfyd::fleet
