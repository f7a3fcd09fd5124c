// Routes about machines: for operators the pools that comfyd keeps, with their instances, events
// and logs; for everybody the GPUs that there are and what a pool's work wants.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api {

// What operators ask of the fleet. Any executor; a Task continues on the executor that awaited it.
struct FleetServices {
    struct Events {
        std::optional<std::string> pool{};
        std::optional<std::string> instance{};
        std::optional<std::uint64_t> before{};
        int limit = 100;
    };

    std::function<Task<Result<json::object>>()> show;
    std::function<Task<Result<json::object>>(Events query)> events;
    // What of it was decided by the autoscaler, and what it decides now. `instance` is not looked
    // at.
    std::function<Task<Result<json::object>>(Events query)> decisions;
    // Code::not_found.
    std::function<Task<Result<json::object>>(std::string pool)> forecast;
    // nullopt: as configured. Code::not_found.
    std::function<Task<Result<json::object>>(std::string pool, std::optional<int> size)> resize;
    // Its template may be started again. Code::not_found.
    std::function<Task<Result<json::object>>(std::string pool)> resume;
    // It ends its jobs and is removed. Code::not_found.
    std::function<Task<Result<json::object>>(std::string instance)> let_go;
    std::function<Task<Result<std::string>>(std::string instance, int lines)> logs;
    int size_max = 1'000;
};
void add_fleet(Router& router, FleetServices services);

// GET /v2/gpus. `services` outlives the router.
void add_gpus(Router& router, const Services& services);

// GET /v2/pools/{name}/scale. `services` outlives the router.
void add_scale(Router& router, const Services& services);

// GET /v2/pools/{name}/forecast, asked of `fleet`.
void add_forecast(Router& router, const Services& services, const FleetServices& fleet);

// The answer of GET /v2/gpus; `shows` says whose jobs may be told. For tests.
json::object encode_gpus(
    const std::vector<jobs::WorkerInfo>& workers, const std::function<bool(const JobId&)>& shows
);

}  // namespace comfyd::api
