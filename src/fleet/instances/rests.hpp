// Who is not asked for a while because it said no, each time for longer. Pure.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "base/time.hpp"

namespace comfyd::fleet {

class Rests {
public:
    struct Limits {
        Millis first;
        Millis most;
    };
    explicit Rests(Limits limits) : limits_(limits) {}

    // Twice as long as the time before, up to the most. `chance` from 0 to 1 spreads those that
    // failed together by a fifth.
    void fail(const std::string& who, Time now, double chance) {
        Entry& entry = entries_[who];
        entry.last =
            entry.last == Millis(0) ? limits_.first : std::min(entry.last * 2, limits_.most);
        entry.until = now + entry.last + spread(entry.last, chance);
    }
    // As it was told.
    void rest(const std::string& who, Time until) { entries_[who].until = until; }
    void succeed(const std::string& who) { entries_.erase(who); }

    Time until(const std::string& who) const {
        const auto found = entries_.find(who);
        return found == entries_.end() ? Time() : found->second.until;
    }

private:
    struct Entry {
        Millis last{0};
        Time until{};
    };
    static Millis spread(Millis time, double chance) {
        constexpr double kPart = 0.2;
        return Millis(static_cast<Millis::rep>(static_cast<double>(time.count()) * kPart * chance));
    }

    const Limits limits_;
    std::map<std::string, Entry> entries_;
};

}  // namespace comfyd::fleet
