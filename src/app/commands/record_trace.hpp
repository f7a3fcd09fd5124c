// Makes a trace for the simulator of the jobs that a server has run.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "base/error.hpp"
#include "base/time.hpp"
#include "jobs/warming.hpp"
#include "simulate/gpu_types.hpp"
#include "simulate/trace.hpp"

namespace comfyd::app {

// The jobs that the server of the data folder was asked for from `since` to `until`. `recorded_on`:
// the type of GPU of its workers, which the times are converted from. How long a run takes without
// loads is not in the ledger: of the jobs of one shape the quicker ones count, and whoever took
// more than twice as long is taken to have loaded models.
Result<simulate::Trace> record_trace(
    const std::filesystem::path& data, Time since, Time until, const simulate::GpuType& recorded_on
);

// The same, with what the kinds of jobs were that ran to their end; of the newest `jobs_max` jobs,
// and as long as `goes_on`, which is asked after each.
struct Recorded {
    simulate::Trace trace;
    jobs::PastKinds kinds;
};
Result<Recorded> record_past(
    const std::filesystem::path& data,
    Time since,
    Time until,
    const simulate::GpuType& recorded_on,
    std::size_t jobs_max,
    const std::function<bool()>& goes_on
);

}  // namespace comfyd::app
