// Stream tickets: what a browser, which can send no header with an EventSource or a WebSocket,
// shows in the address instead of its key. Good for a minute and for streams alone; signed with a
// secret of the process, so nothing is kept and a restart ends them. Immutable: any thread may ask.
#pragma once

#include <string>
#include <string_view>

#include "auth/authenticator.hpp"
#include "base/time.hpp"

namespace comfyd::auth {

class Tickets {
public:
    explicit Tickets(Millis lifetime = std::chrono::seconds(60));

    struct Ticket {
        std::string text;  // letters, digits, '-', '_' and '.'
        Time expires_at;
    };
    // For the streams of the caller's tenant; with `execution` for those of this one alone.
    Ticket issue(const Caller& caller, std::string_view execution, Time now) const;

    // Who holds it, and may read of jobs alone. `execution` is the one whose stream is asked for,
    // empty where a stream has none. Code::unauthorized.
    Result<Caller> redeem(std::string_view ticket, std::string_view execution, Time now) const;

private:
    std::string sign(std::string_view text) const;

    std::string secret_;
    Millis lifetime_;
};

}  // namespace comfyd::auth
