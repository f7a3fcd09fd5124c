// How many attempts of all jobs may be repetitions of others: a part of what is started anyway, and
// a few beside. A bad deploy that lets everything fail then does not double the load; what is
// beyond the budget waits its time, each one behind the other. Pure; one owner.
//
// It is forgotten with its lead: whoever leads next begins with a whole one.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.hpp"

namespace comfyd::jobs {

class RetryBudget {
public:
    struct Limits {
        double part = 0.2;       // of the attempts that began in the latest minute
        double per_minute = 60;  // beside that; more than 0
    };
    explicit RetryBudget(Limits limits) : limits_(limits) {}

    void note_start(Time now);
    // Takes one, and says how long it has to wait.
    Millis take(Time now);
    // That were told to wait longer than their own turn, since the start.
    std::uint64_t held() const { return held_; }

private:
    static constexpr std::size_t kParts = 6;
    static constexpr Millis kSpan{60'000};

    double starts(Time now) const;

    Limits limits_;
    struct Part {
        std::int64_t number = -1;  // of its ten seconds
        double starts = 0;
    };
    std::array<Part, kParts> parts_{};
    Time paid_at_{};  // when what was taken so far will have been earned
    std::uint64_t held_ = 0;
};

}  // namespace comfyd::jobs
