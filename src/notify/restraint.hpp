// How much a channel may send: so many in a time altogether and to each recipient, and nothing at
// all while it is paused. What has to wait is told for how long, each one behind the other, so that
// they do not come back all at once. Each node counts for itself. One owner, no locks.
#pragma once

#include <optional>
#include <string>

#include "base/lru_map.hpp"
#include "base/time.hpp"

namespace comfyd::notify {

struct Rate {
    int count = 0;  // 0: no limit
    Millis per{60'000};
};

class Restraint {
public:
    struct Limits {
        Rate of_channel{};
        Rate of_recipient{};
    };
    // `clock` outlives it.
    Restraint(const Clock& clock, Limits limits);

    // Nullopt: it may be sent now, and is counted. Else: not before this time has passed.
    std::optional<Millis> take(const std::string& recipient);
    // True when it was not paused before.
    bool pause(Millis time);
    bool is_paused() const { return clock_.now() < paused_until_; }

private:
    // Of a rate: when what was sent so far will have been paid for, and until when others wait.
    struct Account {
        Time paid_at{};
        Time queue_end{};
    };
    std::optional<Millis> wait_of(Account& account, const Rate& rate, Time now);

    const Clock& clock_;
    const Limits limits_;
    Account all_;
    LruMap<Account> recipients_{4096};
    Time paused_until_{};
};

}  // namespace comfyd::notify
