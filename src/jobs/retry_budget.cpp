#include "jobs/retry_budget.hpp"

#include <algorithm>

namespace comfyd::jobs {
namespace {

constexpr Millis kPart{10'000};

std::int64_t number_of(Time time) {
    return to_unix_ms(time) / kPart.count();
}

}  // namespace

void RetryBudget::note_start(Time now) {
    const std::int64_t number = number_of(now);
    Part& part = parts_[static_cast<std::size_t>(number) % kParts];
    if (part.number != number) {
        part = {number, 0};
    }
    part.starts += 1;
}

double RetryBudget::starts(Time now) const {
    const std::int64_t latest = number_of(now);
    double sum = 0;
    for (const Part& part : parts_) {
        const bool is_recent =
            part.number <= latest && part.number > latest - static_cast<std::int64_t>(kParts);
        sum += is_recent ? part.starts : 0;
    }
    return sum;
}

// What a minute earns may be taken at once; then one after each share of the minute.
Millis RetryBudget::take(Time now) {
    const double earned = limits_.per_minute + limits_.part * starts(now);
    const Millis share(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(60'000.0 / std::max(earned, 0.001)))
    );
    // A clock that was set back must not hold anything up for longer.
    constexpr Millis kDebtMax = std::chrono::hours(1);
    paid_at_ = std::clamp(paid_at_, now, now + kSpan + kDebtMax) + share;
    const Millis wait = std::max(Millis(0), paid_at_ - now - kSpan);
    held_ += wait > Millis(0) ? 1 : 0;
    return wait;
}

}  // namespace comfyd::jobs
