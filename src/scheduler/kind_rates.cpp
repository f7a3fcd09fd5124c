#include "scheduler/kind_rates.hpp"

#include <algorithm>
#include <cmath>

namespace comfyd::scheduler {
namespace {

constexpr double kMemory_s = 600;
constexpr Millis kAhead{600'000};  // that a forecast looks ahead
constexpr std::int64_t kDayHours = 24;

std::int64_t hour_of(Time time) {
    return std::chrono::floor<std::chrono::hours>(time.time_since_epoch()).count();
}

}  // namespace

std::string kind_of(const Profile& profile) {
    std::string kind;
    for (const Model& model : profile.models) {
        kind += model.name;
        kind += '\n';
    }
    if (!kind.empty()) {
        kind += profile.requirement.machine_text();
    }
    return kind;
}

void KindRates::arrived(const ProfilePtr& profile, Time now) {
    std::string name = kind_of(*profile);
    if (name.empty()) {
        return;
    }
    const std::int64_t hour = hour_of(now);
    first_hour_ = kinds_.empty() ? hour : first_hour_;
    Kind& kind = kinds_[std::move(name)];
    kind.per_s = lately(kind, now) + 1 / kMemory_s;
    kind.latest = now;
    kind.profile = profile;
    ++kind.by_hour[hour];
    kind.by_hour.erase(
        kind.by_hour.begin(), kind.by_hour.lower_bound(hour - (kDays + 1) * kDayHours)
    );
    if (kinds_.size() > kKindsMax) {
        kinds_.erase(std::ranges::min_element(kinds_, {}, [](const auto& entry) {
            return entry.second.latest;
        }));
    }
}

double KindRates::lately(const Kind& kind, Time now) const {
    const double passed_s = std::chrono::duration<double>(now - kind.latest).count();
    return kind.per_s * std::exp(-std::max(0.0, passed_s) / kMemory_s);
}

// The median of that hour on past days.
double KindRates::forecast(const Kind& kind, std::int64_t hour) const {
    std::vector<std::uint32_t> counts;
    for (int day = 1; day <= kDays && hour - day * kDayHours > first_hour_; ++day) {
        const auto found = kind.by_hour.find(hour - day * kDayHours);
        counts.push_back(found == kind.by_hour.end() ? 0 : found->second);
    }
    if (counts.size() < static_cast<std::size_t>(kDaysLeast)) {
        return 0;
    }
    const auto middle = counts.begin() + static_cast<std::ptrdiff_t>((counts.size() - 1) / 2);
    std::ranges::nth_element(counts, middle);
    return static_cast<double>(*middle) / 3600;
}

std::vector<KindRates::Wanted> KindRates::wanted(Time now) const {
    const std::int64_t hour = hour_of(now + kAhead);
    std::vector<Wanted> wanted;
    for (const auto& [name, kind] : kinds_) {
        wanted.push_back({name, kind.profile, std::max(lately(kind, now), forecast(kind, hour))});
    }
    return wanted;
}

}  // namespace comfyd::scheduler
