// How much work came in each hour of the last two weeks, and what that says of the same hours to
// come. A forecast counts where it was right before: it is made for past hours, too, from what was
// known then, and compared with what came. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::autoscale {

class History {
public:
    static constexpr int kDays = 14;
    static constexpr int kDaysUsed = 7;   // the latest that a forecast is made of
    static constexpr int kDaysLeast = 2;  // fewer say nothing
    static constexpr double kErrorMax = 0.3;

    // GPU-seconds that came lately; times only rise.
    void add(Time now, double seconds);

    struct Forecast {
        Time hour{};
        double machines = 0;            // that would be busy all the hour: the median of past days
        int days = 0;                   // it is made of
        std::optional<double> error{};  // measured: the median of |forecast - came| / came
        bool is_trusted() const { return error && *error <= kErrorMax; }
    };
    // For the hour that holds `at`; nullopt: too little is known.
    std::optional<Forecast> forecast(Time at) const;
    // What has come in it, as machines that were busy; nullopt: nobody looked.
    std::optional<double> came(Time hour) const;

    json::object to_json() const;
    static History from_json(const json::object& about);

private:
    struct Guess {
        double machines = 0;
        int days = 0;
    };
    std::optional<Guess> guess(std::int64_t hour) const;
    bool is_whole(std::int64_t hour) const { return hour > first_ && hour < last_; }

    std::map<std::int64_t, double>
        seconds_;             // by hour since 1970; hours without work are not there
    std::int64_t first_ = 0;  // hours that were looked at; the first and the last
    std::int64_t last_ = -1;  // are not whole
};

}  // namespace comfyd::autoscale
