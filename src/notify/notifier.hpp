// Tells of jobs what their clients want to hear: at least once, in order for each receiver of a
// job, with back-off, and without letting a dead receiver delay anybody else; by whichever channel
// reaches the target. Runs on one executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/circuit_breaker.hpp"
#include "base/task.hpp"
#include "jobs/ledger.hpp"
#include "notify/channel.hpp"
#include "notify/outbox.hpp"

namespace comfyd::notify {

// A receiver said that it is gone.
using DisableEndpoint = std::function<Task<Result<>>(EndpointId, std::string why)>;

struct NotifierOptions {
    std::size_t in_flight_max = 256;
    std::size_t in_flight_per_lane_max = 8;
    Millis first_retry{1'000};  // then doubled each time, with jitter
    Millis retry_max{std::chrono::hours(1)};
    Millis give_up_after{std::chrono::hours(24)};
    Millis progress_interval{1'000};  // at most one message about progress of a job in this time
    // A receiver that fails so often in a row is left alone for a while, which begins with
    // first_retry and is doubled each time.
    int failures_before_rest = 5;
    Millis rest_max{60'000};
    DisableEndpoint disable_endpoint{};  // empty: there are no endpoints
    // By which it waits for receivers that rest; nullptr: the same as it is made with. Outlives it.
    const Clock* pace = nullptr;
};

struct NotifierCounters {
    std::uint64_t delivered = 0;
    std::uint64_t failed_attempts = 0;
    std::uint64_t dead = 0;
    std::uint64_t in_flight = 0;  // now
    std::uint64_t resting = 0;    // receivers that are left alone now
};

class Notifier {
public:
    Notifier(
        Executor executor,
        Clock& clock,
        Outbox& outbox,
        jobs::Ledger& ledger,
        Channels channels,
        NotifierOptions options
    );
    ~Notifier();

    void start();  // on the executor
    void wake();   // any thread: something may be due
    // Any thread. Progress is sent once, the newest only, and not after a later change of the job.
    void tell_progress(jobs::Job job, Recipient to, jobs::Event progress);
    // Any thread: this is stored, and the outbox may have it. The job as it is after it.
    void tell_change(const jobs::Job& job, const jobs::Event& event);
    // Any thread: sends it once, past all queues, and writes nothing down.
    Task<Outcome> try_once(Message message);
    // Any thread: what the next attempt would send. nullopt: nothing is to be seen of it.
    Task<Result<std::optional<Letter>>> show(Delivery delivery);
    // On the executor: ends attempts in flight; they are repeated after the next start.
    Task<> stop();
    NotifierCounters counters() const;  // any thread
    // Any thread: of the operator's servers, by the names of their lanes.
    Task<std::map<std::string, CircuitBreaker::State>> breakers() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::notify
