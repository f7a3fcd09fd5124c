// Time that stands still until it is moved, for simulations: a clock, and the time of an
// io_context. Whoever waits there with sleep_for() or a Signal goes on when this time has come,
// whatever the real one is. Everything on the context's one thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>

#include "base/time.hpp"

namespace comfyd {

class VirtualTime final : public Clock {
public:
    // From now on, for all who begin to wait on `context`. One for a context.
    VirtualTime(boost::asio::io_context& context, Time start);

    Time now() const override;
    // When the next of those who wait is due; nullopt: nobody waits for a time.
    std::optional<Time> next() const;
    // Those who are due by then are woken in the order of their times, and go on when the context
    // is run. REQUIRES: not in the past.
    void advance_to(Time then);

    class Service;
    struct State;

private:
    std::shared_ptr<State> state_;  // shared with those who wait
};

// What sleep_for() and Signal count by on this context: the real steady time, or the virtual one.
std::chrono::steady_clock::time_point steady_time_of(boost::asio::io_context& context);

}  // namespace comfyd
