// GET /v2/gpus: the GPUs of all workers, as one pool.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/dialects/fleet/fleet.hpp"
#include "api/dialects/fleet/fleet_openapi.hpp"
#include "api/visible_workers.hpp"

namespace comfyd::api {
namespace {

constexpr double kGigabyte = 1024.0 * 1024 * 1024;

double gigabytes(std::uint64_t bytes) {
    constexpr double kHundred = 100;
    return static_cast<double>(
               static_cast<std::int64_t>(static_cast<double>(bytes) / kGigabyte * kHundred + 0.5)
           ) /
           kHundred;
}

// Workers that share one.
struct Gpu {
    const jobs::WorkerInfo* first = nullptr;
    std::uint64_t free = 0;
    std::size_t slots = 0;
    std::size_t running = 0;
    bool is_up = false;
    std::vector<JobId> jobs{};
    Time last_used{};

    void add(const jobs::WorkerInfo& worker) {
        using jobs::WorkerStatus;
        const bool answers = worker.status == WorkerStatus::idle ||
                             worker.status == WorkerStatus::running ||
                             worker.status == WorkerStatus::draining;
        free = first == nullptr ? worker.vram_free : std::min(free, worker.vram_free);
        first = first == nullptr ? &worker : first;
        slots += static_cast<std::size_t>(std::max(worker.slots, 1));
        running += worker.running;
        is_up = is_up || answers;
        jobs.insert(jobs.end(), worker.jobs.begin(), worker.jobs.end());
        last_used = std::max(last_used, worker.last_active_at);
    }
};

json::object encode(
    const std::string& id, const Gpu& gpu, const std::function<bool(const JobId&)>& shows
) {
    const auto told = std::ranges::find_if(gpu.jobs, shows);
    return {
        {"gpu_id", id},
        {"gpu_type", gpu.first->gpu},
        {"memory_gb", gigabytes(gpu.first->vram_total)},
        {"available_memory_gb", gigabytes(gpu.is_up ? gpu.free : 0)},
        {"current_load",
         std::min(1.0, static_cast<double>(gpu.running) / static_cast<double>(gpu.slots))},
        {"allocated_to",
         told == gpu.jobs.end() ? json::value(nullptr) : json::value(told->to_string())},
        {"last_used", to_rfc3339(gpu.last_used)},
    };
}

Task<> list_gpus(Call& call, const Services& services) {
    const auto workers = co_await visible_workers(call, services);
    std::set<JobId> shown;
    const bool sees_all = call.caller.may(auth::Scope::admin);
    for (const jobs::WorkerInfo& worker : workers) {
        for (const JobId& job : worker.jobs) {
            if (sees_all) {
                shown.insert(job);
                continue;
            }
            const auto own = co_await services.jobs.get(call.caller.tenant, job);
            if (own) {
                shown.insert(job);
            }
        }
    }
    const auto shows = [&shown](const JobId& job) { return shown.contains(job); };
    co_await send(call, json_response(200, encode_gpus(workers, shows)));
}

}  // namespace

// Our own engine has none, nor has a ComfyUI on a CPU.
json::object encode_gpus(
    const std::vector<jobs::WorkerInfo>& workers, const std::function<bool(const JobId&)>& shows
) {
    std::map<std::string, Gpu> gpus;
    for (const jobs::WorkerInfo& worker : workers) {
        if (worker.url != "engine:" && !worker.gpu.starts_with("cpu")) {
            gpus[worker.gpu_id.empty() ? worker.id : worker.gpu_id].add(worker);
        }
    }
    json::array listed;
    int allocated = 0;
    int available = 0;
    for (const auto& [id, gpu] : gpus) {
        allocated += gpu.running > 0 ? 1 : 0;
        available += gpu.is_up && gpu.running == 0 ? 1 : 0;
        listed.emplace_back(encode(id, gpu, shows));
    }
    const double total = static_cast<double>(gpus.size());
    return {
        {"total_gpus", gpus.size()},
        {"available_gpus", available},
        {"allocated_gpus", allocated},
        {"utilization_percent", gpus.empty() ? 0.0 : 100.0 * allocated / total},
        {"gpus", std::move(listed)},
    };
}

void add_gpus(Router& router, const Services& services) {
    router.add_schemas(gpu_schemas());
    router.add(Route{
        net::Method::get,
        "/v2/gpus",
        [&services](Call& call) { return list_gpus(call, services); },
        encode_error,
        Access::jobs,
        fleet_operation("listGpus", "workers", R"json({
            "summary": "The GPUs that there are, and which of them are in use",
            "responses": {"200": ["All of them.", "GpuPool"]}
        })json")
    });
}

}  // namespace comfyd::api
