// Writes down what came of attempts: delivered, to be tried again and when, or given up. Runs on
// one executor; counters() may be asked on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/task.hpp"
#include "notify/lanes.hpp"
#include "notify/notifier.hpp"
#include "notify/outbox.hpp"

namespace comfyd::notify {

class Recorder {
public:
    // The first two outlive it.
    Recorder(Clock& clock, Outbox& outbox, NotifierOptions options)
        : clock_(clock), outbox_(outbox), options_(options) {}

    // Until it is written down: what was delivered is not to be sent again. `attempt` lives in the
    // frame that awaits this.
    Task<> record(const Attempt& attempt, Outcome outcome, RetryWish wish, Millis took);
    // Without an attempt.
    Task<Result<>> give_up(Delivery delivery, std::string why);
    Task<> give_up_waiting(std::string endpoint, std::string why);
    // Of progress nothing is written.
    void count_progress(const Outcome& outcome);
    NotifierCounters counters() const;

private:
    Task<Result<>> write(Delivery delivery, Outcome outcome, RetryWish wish, Time now);

    Clock& clock_;
    Outbox& outbox_;
    const NotifierOptions options_;
    std::atomic<std::uint64_t> delivered_{0};
    std::atomic<std::uint64_t> failed_attempts_{0};
    std::atomic<std::uint64_t> dead_{0};
};

}  // namespace comfyd::notify
