// What must hold whatever happens. Everything that becomes true outside of the process is told
// here; the first thing that must not be is kept, in words.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "events/hub.hpp"
#include "jobs/fleet.hpp"
#include "jobs/ledger.hpp"
#include "ledger/memory_ledger.hpp"

namespace comfyd::simulation {

class Rules {
public:
    Rules(const Clock& clock, const ledger::MemoryLedger& stored)
        : clock_(clock), stored_(stored) {}

    const std::optional<std::string>& broken() const { return broken_; }
    void break_one(std::string what);

    // The ledger has it.
    void on_accepted(const JobId& id);
    void on_committed(const jobs::Job& before, const jobs::Change& change);

    // Clients.
    // How often it was revived so far: an answer may tell of the time before another one.
    int on_cancel_asked(const JobId& id);
    void on_cancel_answered(const JobId& id, int revivals, bool is_done);
    void on_retry_asked(const JobId& id) { jobs_[id].retries_open += 1; }
    void on_retry_answered(const JobId& id) { jobs_[id].retries_open -= 1; }

    // Workers.
    void on_run(const jobs::Assignment& assignment, const std::string& worker);
    void on_run_ended(const jobs::Assignment& assignment, bool is_good);

    // What the process tells of a job: every change that the ledger has, once and in order.
    void on_told_job(const jobs::Job& job, bool is_new);
    void on_told_change(const jobs::Job& job, const jobs::Event& event);
    // The process has ended, one way or another; the next one knows only what is stored.
    void on_process_ended();

    // When nothing is under way: the counts that the process keeps are those of the table.
    void check_counts(std::size_t queued, std::size_t running, std::size_t retry_waiting);
    void check_all_told();
    // At the end.
    void check_all_ended();

private:
    struct Known {
        bool is_cancel_asked = false;
        int cancels_open = 0;
        int revivals = 0;
        int retries_open = 0;
        bool is_running = false;  // in this process
        std::set<int> good_attempts;
        std::vector<std::uint64_t> committed;   // sequence numbers, since this process knows of it
        std::optional<std::size_t> told;        // how many of them; nullopt: nothing was told yet
        std::uint64_t sequence_of_process = 0;  // the latest that was told
    };

    void check_start(const jobs::Change& change);
    void check_end(const jobs::Change& change);

    const Clock& clock_;
    const ledger::MemoryLedger& stored_;
    std::map<JobId, Known> jobs_;
    std::map<std::pair<std::string, std::string>, Time> keys_;
    std::optional<std::string> broken_;
};

}  // namespace comfyd::simulation
