// How an attempt that runs on any kind of worker comes to its end. Core executor.
#pragma once

#include <optional>

#include "base/task.hpp"
#include "jobs/fleet.hpp"

namespace comfyd::fleet {

// Waits for the result of the attempt (nullopt), or for a reason to end it without one: a stop, the
// time limit (0: none), or that the caller itself is cancelled, which is Code::shutting_down.
// Whoever sets the result notifies `stop.requested`.
Task<std::optional<Code>> wait_for_end(
    const std::optional<Result<jobs::AttemptResult>>& result,
    jobs::StopRequest& stop,
    Millis timeout
);

}  // namespace comfyd::fleet
