#include "autoscale/settings.hpp"

namespace comfyd::autoscale {

bool Minimum::holds(Time now) const {
    const auto day = std::chrono::floor<std::chrono::days>(now);
    const auto minute =
        static_cast<int>(std::chrono::floor<std::chrono::minutes>(now - day).count());
    const auto is_on = [this](std::chrono::sys_days on) {
        const unsigned weekday = std::chrono::weekday(on).iso_encoding() - 1;
        return ((weekdays >> weekday) & 1U) != 0;
    };
    if (from_minute <= to_minute) {
        return is_on(day) && minute >= from_minute && minute < to_minute;
    }
    return (is_on(day) && minute >= from_minute) ||
           (is_on(day - std::chrono::days(1)) && minute < to_minute);
}

}  // namespace comfyd::autoscale
