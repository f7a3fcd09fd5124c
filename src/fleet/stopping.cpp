#include "fleet/stopping.hpp"

#include <algorithm>
#include <chrono>

#include "base/deadline.hpp"

namespace comfyd::fleet {
namespace {

constexpr Millis kLongWait = std::chrono::hours(1);

}  // namespace

Task<std::optional<Code>> wait_for_end(
    const std::optional<Result<jobs::AttemptResult>>& result,
    jobs::StopRequest& stop,
    Millis timeout
) {
    const Deadline deadline = timeout > Millis(0) ? Deadline::in(timeout) : Deadline::never();
    while (!result) {
        if (stop.reason) {
            co_return *stop.reason;
        }
        if (deadline.has_passed()) {
            co_return Code::execution_timeout;
        }
        co_await stop.requested.wait_for(std::min(deadline.left(), kLongWait));
        const bool abandoned = co_await is_cancelled();
        if (abandoned && !result) {
            co_return Code::shutting_down;
        }
    }
    co_return std::nullopt;
}

}  // namespace comfyd::fleet
