#include "cluster/roll_call.hpp"

#include <utility>

#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::cluster {

void RollCall::start() {
    COMFYD_ON(p_.core);
    tasks_.spawn("roll call", run());
}

Task<> RollCall::stop() {
    COMFYD_ON(p_.core);
    tasks_.cancel();
    co_await tasks_.join();
    if (!is_listed_) {
        co_return;  // nobody waits for a database that did not answer before
    }
    auto gone = co_await p_.roster.sign_out(p_.node);
    if (!gone) {
        log::warning("the list of nodes was not changed", {{"error", gone.error().message}});
    }
}

Task<> RollCall::run() {
    for (bool goes_on = true; goes_on;) {
        co_await answer();
        goes_on = co_await sleep_for(kEvery);
    }
}

Task<> RollCall::answer() {
    const Time sent = p_.clock.own().now();
    const auto there = co_await p_.roster.sign_in(p_.node, p_.about());
    is_listed_ = there.has_value();
    if (!there) {
        log::warning("the list of nodes was not changed", {{"error", there.error().message}});
        co_return;
    }
    // The database looked at its clock somewhere between: half of that time is what is not known.
    const Time answered = p_.clock.own().now();
    note_clock(sent + (answered - sent) / 2 - *there);
}

void RollCall::note_clock(Millis ahead) {
    clock_ahead_ = ahead;
    if (std::chrono::abs(ahead - p_.clock.ahead()) > kWorthSetting) {
        p_.clock.set_ahead(ahead);
    }
    const bool is_off = ahead > kClockMayBeOff || ahead < -kClockMayBeOff;
    if (is_off && !has_warned_) {
        log::warning(
            "the clock of this machine is not the database's, which is gone by; set both by NTP",
            {{"ahead_ms", ahead.count()}}
        );
    }
    has_warned_ = is_off;
}

}  // namespace comfyd::cluster
