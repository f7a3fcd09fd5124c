#include "fleet/stopping.hpp"

#include <algorithm>
#include <chrono>

namespace comfyd::fleet {
namespace {

constexpr Millis kLongWait = std::chrono::hours(1);

}  // namespace

Task<std::optional<Code>> wait_for_end(
    const std::optional<Result<jobs::AttemptResult>>& result,
    jobs::StopRequest& stop,
    Millis timeout
) {
    using Ticks = std::chrono::steady_clock;
    const bool limited = timeout > Millis(0);
    const auto deadline = Ticks::now() + timeout;
    while (!result) {
        const auto left = std::chrono::ceil<Millis>(deadline - Ticks::now());
        if (stop.reason) {
            co_return *stop.reason;
        }
        if (limited && left <= Millis(0)) {
            co_return Code::execution_timeout;
        }
        co_await stop.requested.wait_for(limited ? std::min(left, kLongWait) : kLongWait);
        const bool abandoned = co_await is_cancelled();
        if (abandoned && !result) {
            co_return Code::shutting_down;
        }
    }
    co_return std::nullopt;
}

}  // namespace comfyd::fleet
