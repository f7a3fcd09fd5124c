// What is due when, by the injected clock: retries and deadlines of jobs, and when to look at the
// queue although nothing has changed. A clock that is set back delays none of it. Core executor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/clock_jumps.hpp"
#include "base/id.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::jobs {

class Alarms {
public:
    // How long to rest when the ledger fails.
    static constexpr Millis kStoragePause{500};

    // Both clocks outlive it: the time of day, and one that nobody sets.
    Alarms(Executor core, Clock& clock, const Clock& pace)
        : clock_(clock), pace_(pace), changed_(core), jumps_(clock, pace) {}

    void set(Time at, const JobId& id);
    void set_soon(const JobId& id) { set(clock_.now() + kStoragePause, id); }
    // Deadlines may be days away: nothing of an ended job waits for them, but for those from before
    // the clock was set back.
    void clear(Time at, const JobId& id) { jobs_.erase({at + set_back_, id}); }
    // In place of what was set for the queue before.
    void set_queue(std::optional<Time> at);
    // The ledger failed: the queue is left alone for a moment.
    void rest();
    bool is_resting() const { return rests_until_ && pace_.now() < *rests_until_; }

    // Until its task is cancelled. An alarm may name a job that is gone; `now` is not before the
    // time that it was set for.
    using Ring = std::function<void(const JobId& id, Time now)>;
    Task<> run(Ring ring, std::function<void()> look_at_queue);

private:
    // As the clock would be if it had never been set back.
    Time now() const { return clock_.now() + set_back_; }
    void ring_due(const Ring& ring);
    // Until the next is due.
    Millis pause() const;

    Clock& clock_;
    const Clock& pace_;
    Signal changed_;
    ClockJumps jumps_;
    Millis set_back_{0};  // altogether
    // By when they are due as now() has it; with what the clock had been set back when they were
    // set.
    std::map<std::pair<Time, JobId>, Millis> jobs_;
    std::optional<Time> queue_;        // likewise
    std::optional<Time> rests_until_;  // of pace_
};

}  // namespace comfyd::jobs
