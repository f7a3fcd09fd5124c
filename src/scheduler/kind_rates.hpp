// How often jobs of each kind come: lately, and at the same hour of past days. Jobs are of one kind
// where they need the same models on the same kind of machine; those that need none are of no kind.
// A plain value; the only clock is the one handed in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "scheduler/profile.hpp"

namespace comfyd::scheduler {

// Empty: of no kind.
std::string kind_of(const Profile& profile);

class KindRates {
public:
    static constexpr std::size_t kKindsMax = 256;  // those that came longest ago are forgotten
    static constexpr int kDays = 7;
    static constexpr int kDaysLeast = 2;  // of fewer nothing is forecast

    // Times only rise.
    void arrived(const ProfilePtr& profile, Time now);

    bool knows(const std::string& kind) const { return kinds_.contains(kind); }
    void forget(const std::string& kind) { kinds_.erase(kind); }

    struct Wanted {
        std::string kind;
        ProfilePtr profile;  // of the latest job
        double per_s = 0;    // jobs that are expected to come in the next minutes
    };
    std::vector<Wanted> wanted(Time now) const;  // all kinds, in no order

private:
    struct Kind {
        ProfilePtr profile;
        double per_s = 0;  // as of `latest`, recent jobs weigh more
        Time latest{};
        std::map<std::int64_t, std::uint32_t> by_hour{};  // since 1970
    };

    double lately(const Kind& kind, Time now) const;
    double forecast(const Kind& kind, std::int64_t hour) const;

    std::map<std::string, Kind> kinds_;
    std::int64_t first_hour_ = 0;  // of the first job of all
};

}  // namespace comfyd::scheduler
