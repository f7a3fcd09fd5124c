#include "notify/restraint.hpp"

#include <algorithm>

namespace comfyd::notify {

Restraint::Restraint(const Clock& clock, Limits limits) : clock_(clock), limits_(limits) {}

bool Restraint::pause(Millis time) {
    const bool is_new = !is_paused();
    paused_until_ = clock_.now() + time;
    return is_new;
}

std::optional<Millis> Restraint::take(const std::string& recipient) {
    const Time now = clock_.now();
    if (now < paused_until_) {
        return paused_until_ - now;
    }
    Account& one = recipients_.use(recipient);
    if (auto wait = wait_of(one, limits_.of_recipient, now)) {
        return wait;
    }
    if (auto wait = wait_of(all_, limits_.of_channel, now)) {
        return wait;
    }
    const auto count = [now](Account& account, const Rate& rate) {
        if (rate.count > 0) {
            account.paid_at = std::max(account.paid_at, now) + rate.per / rate.count;
        }
    };
    count(one, limits_.of_recipient);
    count(all_, limits_.of_channel);
    return std::nullopt;
}

// The whole count may be sent at once; then one after each share of the time.
std::optional<Millis> Restraint::wait_of(Account& account, const Rate& rate, Time now) {
    if (rate.count <= 0) {
        return std::nullopt;
    }
    const Millis share = rate.per / rate.count;
    const Time free_at = account.paid_at - share * (rate.count - 1);
    if (free_at <= now) {
        return std::nullopt;
    }
    account.queue_end = std::max(account.queue_end + share, free_at);
    return account.queue_end - now;
}

}  // namespace comfyd::notify
