// What is done to the outputs of a run before the end of its job is stored: what kind of files they
// are is looked up, and the forms of them are made that the client asked for. Implemented by the
// media room.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

// The outputs with what is known of them and with their variants; one that cannot be made is noted
// there and fails nothing. Code::cancelled alone: `stop` came before it was done. Any executor.
using FinishOutputs = std::function<
    Task<Result<std::vector<Output>>>(Job job, std::vector<Output> outputs, std::stop_token stop)>;

}  // namespace comfyd::jobs
