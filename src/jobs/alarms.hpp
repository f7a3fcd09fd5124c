// What is due when, by the injected clock: retries and deadlines of jobs, and when to look at the
// queue although nothing has changed. Core executor.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/id.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::jobs {

class Alarms {
public:
    // How long to rest when the ledger fails.
    static constexpr Millis kStoragePause{500};

    // `clock` outlives it.
    Alarms(Executor core, Clock& clock) : clock_(clock), changed_(core) {}

    void set(Time at, const JobId& id);
    void set_soon(const JobId& id) { set(clock_.now() + kStoragePause, id); }
    // Deadlines may be days away: nothing of an ended job waits for them.
    void clear(Time at, const JobId& id) { jobs_.erase({at, id}); }
    // In place of what was set for the queue before.
    void set_queue(std::optional<Time> at);
    // The ledger failed: the queue is left alone for a moment.
    void rest();
    bool is_resting() const { return rests_until_ && clock_.now() < *rests_until_; }

    // Until its task is cancelled. An alarm may name a job that is gone.
    using Ring = std::function<void(const JobId& id, Time now)>;
    Task<> run(Ring ring, std::function<void()> look_at_queue);

private:
    // Until the next is due.
    Millis pause(Time now) const;

    Clock& clock_;
    Signal changed_;
    std::set<std::pair<Time, JobId>> jobs_;
    std::optional<Time> queue_;
    std::optional<Time> rests_until_;
};

}  // namespace comfyd::jobs
