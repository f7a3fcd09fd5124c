// GET /v2/pools/{name}/scale.
#include "api/dialects/fleet/scale.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "api/dialects/fleet/fleet.hpp"
#include "api/dialects/fleet/fleet_openapi.hpp"
#include "api/visible_workers.hpp"

namespace comfyd::api {
namespace {

using jobs::WorkerStatus;

constexpr std::size_t kWorkersMax = 10'000;

double rounded(double seconds) {
    constexpr double kHundred = 100;
    return std::round(seconds * kHundred) / kHundred;
}

bool is_of_pool(const jobs::Load::Waiting& waiting, const ScaleQuestion& question) {
    return waiting.machine.pool == question.pool ||
           (waiting.machine.pool.empty() && question.has_rest);
}

json::object encode_use(const jobs::Load::Use& use) {
    return {
        {"worker", use.worker},
        {"status", to_string(use.status)},
        {"running", use.jobs},
        {"running_gpu_seconds", rounded(use.seconds)},
        {"models_wanted_by", use.wanted},
        {"deletion_cost", deletion_cost(use)},
    };
}

// What waits for machines that the pool does not have.
json::object encode_unserved(const jobs::Load::Waiting& waiting) {
    return {
        {"gpu_type", waiting.machine.gpu},
        {"memory_gb", waiting.machine.memory_gb},
        {"region", waiting.machine.region},
        {"waiting", waiting.jobs},
    };
}

Result<double> read_within(const Call& call) {
    constexpr double kMost = 3600;
    const std::string_view text = call.query_value("within");
    double seconds = ScaleQuestion().within_s;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
    const bool is_read = read.ec == std::errc() && read.ptr == text.data() + text.size();
    if (!text.empty() && !(is_read && seconds >= 1 && seconds <= kMost)) {
        return fail(
            Code::invalid_argument,
            "'within' is a number of seconds from 1 to 3600",
            {{"field", "within"}}
        );
    }
    return seconds;
}

Result<> check_pool(const Call& call, const Services& services, const std::string& pool) {
    const bool is_there = services.options.pools.contains(pool);
    return is_there && is_pool_for(call, services, pool)
               ? Result<>()
               : fail(Code::not_found, "there is no such pool");
}

Task<> show_scale(Call& call, const Services& services) {
    ScaleQuestion question;
    question.pool = call.path_parameters.front();
    const auto known = check_pool(call, services, question.pool);
    const auto within = read_within(call);
    if (!known || !within) {
        co_await send(call, encode_error(known ? within.error() : known.error()));
        co_return;
    }
    const auto& pools = services.options.pools;
    question.within_s = *within;
    question.has_rest = question.pool == "default" || !pools.contains("default");
    const auto slots = services.options.pool_slots.find(question.pool);
    question.slots = slots == services.options.pool_slots.end() ? 1 : slots->second;
    auto load = co_await services.jobs.load(question.pool);
    if (!load) {
        co_await send(call, encode_error(load.error()));
        co_return;
    }
    co_await send(call, json_response(200, encode_scale(*load, question)));
}

using Forecast = std::function<Task<Result<json::object>>(std::string)>;

Task<> show_forecast(Call& call, const Services& services, const Forecast& forecast) {
    const std::string pool = call.path_parameters.front();
    if (const auto known = check_pool(call, services, pool); !known) {
        co_await send(call, encode_error(known.error()));
        co_return;
    }
    auto told = co_await forecast(pool);
    co_await send(call, told ? json_response(200, *told) : encode_error(told.error()));
}

}  // namespace

int deletion_cost(const jobs::Load::Use& use) {
    constexpr std::size_t kServes = 1'000;
    constexpr std::size_t kWantedMax = 999;
    constexpr std::size_t kJob = 10'000;
    constexpr std::size_t kJobsMax = 1'000;
    const bool serves = use.status == WorkerStatus::idle || use.status == WorkerStatus::running;
    const std::size_t cost = (serves ? kServes + std::min(use.wanted, kWantedMax) : 0) +
                             kJob * std::min(use.jobs, kJobsMax);
    return static_cast<int>(cost);
}

json::object encode_scale(const jobs::Load& load, const ScaleQuestion& question) {
    std::size_t waiting = 0;
    double waiting_s = 0;
    json::array unserved;
    for (const jobs::Load::Waiting& one : load.waiting) {
        if (is_of_pool(one, question)) {
            waiting += one.jobs;
            waiting_s += one.seconds;
            if (!one.is_served && unserved.size() < kWorkersMax) {
                unserved.emplace_back(encode_unserved(one));
            }
        }
    }
    std::size_t running = 0;
    double running_s = 0;
    int slots = 0;
    std::vector<const jobs::Load::Use*> workers;
    for (const jobs::Load::Use& use : load.workers) {
        if (use.pool == question.pool) {
            running += use.jobs;
            running_s += use.seconds;
            slots = std::max(slots, use.slots);
            workers.push_back(&use);
        }
    }
    std::ranges::sort(workers, {}, [](const jobs::Load::Use* use) {
        return std::pair(deletion_cost(*use), use->worker);
    });
    json::array listed;
    for (const jobs::Load::Use* use : workers) {
        if (listed.size() < kWorkersMax) {
            listed.emplace_back(encode_use(*use));
        }
    }
    slots = slots == 0 ? std::max(question.slots, 1) : slots;
    const double more = std::clamp(
        std::ceil(waiting_s / question.within_s),
        waiting > 0 ? 1.0 : 0.0,
        static_cast<double>(waiting)
    );
    const double machines = std::ceil((static_cast<double>(running) + more) / slots);
    return {
        {"pool", question.pool},
        {"machines", static_cast<std::int64_t>(machines)},
        {"waiting", waiting},
        {"running", running},
        {"slots", slots},
        {"waiting_gpu_seconds", rounded(waiting_s)},
        {"running_gpu_seconds", rounded(running_s)},
        {"within_seconds", question.within_s},
        {"unserved", std::move(unserved)},
        {"workers", std::move(listed)},
    };
}

void add_forecast(Router& router, const Services& services, const FleetServices& fleet) {
    router.add(Route{
        net::Method::get,
        "/v2/pools/{name}/forecast",
        [&services, forecast = fleet.forecast](Call& call) {
            return show_forecast(call, services, forecast);
        },
        encode_error,
        Access::jobs,
        fleet_operation("showPoolForecast", "workers", R"json({
            "summary": "How much work a pool may expect at the hours to come, from the same hours of past days",
            "responses": {"200": ["Machines that would be busy, and how right such forecasts were.", "PoolForecast"], "404": ["There is no such pool that comfyd keeps."]}
        })json")
    });
}

void add_scale(Router& router, const Services& services) {
    router.add_schemas(scale_schemas());
    router.add(Route{
        net::Method::get,
        "/v2/pools/{name}/scale",
        [&services](Call& call) { return show_scale(call, services); },
        encode_error,
        Access::jobs,
        fleet_operation("showPoolScale", "workers", R"json({
            "summary": "How many machines the waiting and running work of a pool wants",
            "description": "For who scales by it: KEDA's trigger metrics-api, an HPA, a script.",
            "parameters": [{"name": "within", "in": "query", "description": "One more machine is wanted for so many seconds of GPU time that wait.", "schema": {"type": "number", "minimum": 1, "maximum": 3600, "default": 60}}],
            "responses": {"200": ["The number, and what it is made of.", "PoolScale"], "404": ["There is no such pool."]}
        })json")
    });
}

}  // namespace comfyd::api
