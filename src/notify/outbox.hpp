// Deliveries: of an event to a receiver. Rows are written by jobs::Ledger::commit() together with
// the change they tell of; to whom, the job's own webhook and notify::Routes say. Implemented by
// the ledger room.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"
#include "notify/target.hpp"

namespace comfyd::notify {

// What is made in order: the deliveries of a job to one receiver.
struct Thread {
    JobId job;
    std::string endpoint;  // as Recipient names it

    friend auto operator<=>(const Thread&, const Thread&) = default;
};

// What came of an attempt, for whoever looks into it later.
struct AttemptNote {
    Time at{};
    int status = 0;  // of HTTP; 0: no answer came, or the channel has none
    Millis took{0};
    std::string error{};  // empty: it was delivered
};
using AttemptLog = std::vector<AttemptNote>;  // the latest, in order
inline constexpr std::size_t kAttemptLogMax = 10;
std::string encode_log(const AttemptLog& log);
AttemptLog decode_log(std::string_view text);  // empty where it cannot be read

struct Delivery {
    JobId job;
    std::uint64_t sequence = 0;  // of the event
    std::string endpoint{};      // with the job its thread
    int attempts = 0;            // made so far
    Time created_at{};
    Time next_attempt_at{};
    std::optional<Target> target{};  // nullopt: what is stored of it cannot be read
    AttemptLog log{};                // is stored with whatever is noted of the delivery

    Thread thread() const { return {job, endpoint}; }
};

class Outbox {
public:
    virtual ~Outbox() = default;
    // Of every thread its oldest undelivered entry, when that one is due; soonest first. Where
    // nodes share the storage, what one was handed out no other gets for half a minute.
    virtual Task<Result<std::vector<Delivery>>> due(Time now, int limit) = 0;
    // When the soonest of all pending entries is due.
    virtual Task<Result<std::optional<Time>>> next_due() = 0;
    virtual Task<Result<>> delivered(Delivery delivery, Time now) = 0;
    virtual Task<Result<>> retry_at(Delivery delivery, Time next_attempt_at, std::string error) = 0;
    // The same without an attempt.
    virtual Task<Result<>> put_aside(Delivery delivery, Time next_attempt_at, std::string why) = 0;
    virtual Task<Result<>> give_up(Delivery delivery, Time now, std::string error) = 0;
    // All that wait for the receiver of this name, of any job; no more than `limit`. How many.
    virtual Task<Result<int>> give_up_waiting(
        std::string endpoint, Time now, std::string why, int limit
    ) = 0;

    // The clock was set back by so much, to `now`: all that waits for a later time comes earlier by
    // as much, what was due already is due now.
    virtual Task<Result<>> hasten(Time now, Millis by) = 0;

    struct Counts {
        std::uint64_t pending = 0;
        std::uint64_t dead = 0;
    };
    virtual Task<Result<Counts>> counts() = 0;
};

}  // namespace comfyd::notify
