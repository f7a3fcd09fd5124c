// Every unfinished job of a domain, each in exactly one place. One table, changed by put() and
// remove() alone, so that its counts cannot drift from it. Core executor.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "jobs/backlog.hpp"
#include "jobs/job.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

class Attempt;

// In the scheduler's queue, or kept out of it for as long as a change of it is under way.
struct Ready {};
// An attempt has failed; queued again at this time.
struct RetryWaiting {
    Time not_before;
    scheduler::JobKeys keys;
};
// Waits for another one that does the same (reuse.hpp).
struct Coalesced {};
// On a worker, or on its way there or from there.
using Attempting = std::shared_ptr<Attempt>;

class JobTable {
public:
    using Place = std::variant<Ready, std::unique_ptr<RetryWaiting>, Coalesced, Attempting>;

    // `backlog` outlives it and is told of those that are queued.
    explicit JobTable(Backlog& backlog) : backlog_(backlog) {}
    ~JobTable();
    JobTable(const JobTable&) = delete;
    JobTable& operator=(const JobTable&) = delete;

    // From wherever it was. `rank` counts where the job is queued: its priority, or 0 of the batch
    // class.
    void put(const JobId& id, Place place, std::size_t rank);
    void remove(const JobId& id);

    bool contains(const JobId& id) const { return entries_.contains(id); }
    template <class Kind>
    bool is(const JobId& id) const {
        const auto found = entries_.find(id);
        return found != entries_.end() && std::holds_alternative<Kind>(found->second.place);
    }
    // nullptr, here and below: it is elsewhere, or there is none.
    std::shared_ptr<Attempt> attempt(const JobId& id) const;
    const RetryWaiting* retry_waiting(const JobId& id) const;
    std::vector<std::shared_ptr<Attempt>> attempts() const;

    // What is known of a job of the table besides; gone with it.
    void set_deadline(const JobId& id, Time deadline);
    std::optional<Time> deadline(const JobId& id) const;
    void set_secrets(const JobId& id, json::object secrets);
    const json::object* secrets(const JobId& id) const;
    // The number of the latest thing that was told of it while it waited; what is stored comes
    // after.
    void set_told(const JobId& id, std::uint64_t sequence);
    std::uint64_t told(const JobId& id) const;

    std::size_t queued_count() const { return counts_[0] + counts_[2]; }
    std::size_t retry_waiting_count() const { return counts_[1]; }
    std::size_t attempt_count() const { return counts_[3]; }

private:
    // Most jobs have none of it.
    struct Besides {
        std::optional<Time> deadline;
        json::object secrets;  // lost at a restart, by design
        std::uint64_t told = 0;
    };
    struct Entry {
        Place place;
        std::unique_ptr<Besides> besides{};
        std::uint8_t rank = 0;
    };

    Besides& besides(const JobId& id);
    const Besides* find_besides(const JobId& id) const;
    void count_in(const Entry& entry);
    void count_out(const Entry& entry);

    Backlog& backlog_;
    std::unordered_map<JobId, Entry> entries_;
    std::array<std::size_t, std::variant_size_v<Place>> counts_{};
};

}  // namespace comfyd::jobs
