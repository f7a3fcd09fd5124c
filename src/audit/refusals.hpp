// Requests that were refused, told of once a minute: a stranger who tries a thousand keys a second
// must not push what matters out of the log. One thread at a time.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

#include "audit/event.hpp"

namespace comfyd::audit {

class Refusals {
public:
    using Steady = std::chrono::steady_clock;

    // True: it is to be written now, the first of its kind (who, from where, what). Others of the
    // kind are counted.
    bool is_first(const Event& event, Steady::time_point now);
    // What was counted, each kind as one event; those of the latest minute only where `all`.
    std::vector<Event> take(Steady::time_point now, bool all);

private:
    struct Kind {
        Event event;  // the first one
        std::uint64_t more = 0;
        Steady::time_point since{};
    };
    std::unordered_map<std::string, Kind> kinds_;
};

inline bool is_refusal(const Event& event) {
    return event.status >= 400 && event.status < 500;
}

}  // namespace comfyd::audit
