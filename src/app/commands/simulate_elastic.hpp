// `comfyd simulate --autoscale`: what scaling would cost and how long jobs would wait, beside fixed
// fleets and peers' rules.
#pragma once

#include <optional>
#include <string>

#include "simulate/elastic_report.hpp"
#include "simulate/gpu_types.hpp"
#include "simulate/trace.hpp"

namespace comfyd::app {

struct ElasticFlags {
    bool is_wanted = false;
    int days = 1;  // of the made-up jobs
    int min = 0;
    int max = 60;
    int spare = 0;
    int idle_timeout_s = 300;
    double start_s = 90;
    // Of made-up days a few, where nothing is said; of jobs that are told none.
    std::optional<double> spot_hours{};
    std::optional<int> stock_outs{};  // a day
    double usd_per_hour = 0;          // 0: as the type of GPU
};

// Jobs of a trace on machines of one type of GPU.
std::vector<simulate::ElasticJob> elastic_jobs(
    const simulate::Trace& trace, const simulate::GpuType& type
);

// What it prints. Code::invalid_argument.
Result<std::string> elastic_text(
    const ElasticFlags& flags,
    const std::vector<simulate::ElasticJob>& jobs,
    const simulate::GpuType& type,
    const simulate::ElasticSettings& settings
);

}  // namespace comfyd::app
