#include "autoscale/history.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace comfyd::autoscale {
namespace {

constexpr int kHoursPerDay = 24;
constexpr double kSecondsPerHour = 3600;

std::int64_t hour_of(Time time) {
    return std::chrono::floor<std::chrono::hours>(time).time_since_epoch() / std::chrono::hours(1);
}

Time time_of(std::int64_t hour) {
    return Time(std::chrono::hours(hour));
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void History::add(Time now, double seconds) {
    const std::int64_t hour = hour_of(now);
    if (last_ < first_ || hour - last_ > kDays * kHoursPerDay) {
        *this = History();
        first_ = hour;
    }
    last_ = std::max(last_, hour);
    if (seconds > 0) {
        seconds_[hour] += seconds;
    }
    const std::int64_t oldest = last_ - kDays * kHoursPerDay;
    first_ = std::max(first_, oldest);
    seconds_.erase(seconds_.begin(), seconds_.lower_bound(oldest));
}

std::optional<double> History::came(Time hour) const {
    if (!is_whole(hour_of(hour))) {
        return std::nullopt;
    }
    const auto found = seconds_.find(hour_of(hour));
    return found == seconds_.end() ? 0 : found->second / kSecondsPerHour;
}

// From the days before it alone.
std::optional<History::Guess> History::guess(std::int64_t hour) const {
    std::vector<double> before;
    for (int day = 1; day <= kDaysUsed; ++day) {
        if (const auto machines = came(time_of(hour - day * kHoursPerDay))) {
            before.push_back(*machines);
        }
    }
    if (std::ssize(before) < kDaysLeast) {
        return std::nullopt;
    }
    return Guess{median(before), static_cast<int>(before.size())};
}

std::optional<History::Forecast> History::forecast(Time at) const {
    const std::int64_t hour = hour_of(at);
    const auto made = guess(hour);
    if (!made) {
        return std::nullopt;
    }
    Forecast forecast{time_of(hour), made->machines, made->days};
    std::vector<double> errors;
    for (int day = 1; day <= kDaysUsed; ++day) {
        const std::int64_t past = hour - day * kHoursPerDay;
        const auto truth = came(time_of(past));
        const auto guessed = guess(past);
        if (truth && guessed) {
            constexpr double kLeast = 0.1;  // machines: less than that is as good as none
            errors.push_back(std::abs(guessed->machines - *truth) / std::max(*truth, kLeast));
        }
    }
    if (!errors.empty()) {
        forecast.error = median(std::move(errors));
    }
    return forecast;
}

json::object History::to_json() const {
    json::object hours;
    for (const auto& [hour, seconds] : seconds_) {
        hours[std::to_string(hour)] = seconds;
    }
    return {{"first", first_}, {"last", last_}, {"seconds", std::move(hours)}};
}

History History::from_json(const json::object& about) {
    History history;
    const auto first = json::find_int(about, "first");
    const auto last = json::find_int(about, "last");
    const auto hours = json::find_object(about, "seconds");
    const bool is_whole = first && *first && last && *last && hours && *hours != nullptr &&
                          **last >= **first && **last - **first <= kDays * kHoursPerDay;
    if (!is_whole) {
        return history;
    }
    history.first_ = **first;
    history.last_ = **last;
    for (std::int64_t hour = history.first_; hour <= history.last_; ++hour) {
        const auto seconds = json::find_number(**hours, std::to_string(hour));
        if (seconds && *seconds && std::isfinite(**seconds) && **seconds > 0) {
            history.seconds_[hour] = **seconds;
        }
    }
    return history;
}

}  // namespace comfyd::autoscale
