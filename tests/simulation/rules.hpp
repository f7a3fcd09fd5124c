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
    Rules(const Clock& clock, const ledger::MemoryLedger& stored) : clock_(clock), stored_(stored) {
        hasty.may_miss = true;
    }

    const std::optional<std::string>& broken() const { return broken_; }
    void break_one(std::string what);

    // The ledger has it.
    void on_accepted(const JobId& id);
    void on_committed(const jobs::Job& before, const jobs::Change& change);

    // Clients.
    // How often it was revived so far: an answer may tell of the time before another one.
    int on_cancel_asked(const JobId& id);
    void on_cancel_answered(const JobId& id, int revivals, bool is_done);
    void on_batch_cancelled() { is_batch_cancelled_ = true; }  // whose jobs are all there are
    void on_retry_asked(const JobId& id) { jobs_[id].retries_open += 1; }
    void on_retry_answered(const JobId& id) { jobs_[id].retries_open -= 1; }

    // Workers.
    void on_run(const jobs::Assignment& assignment, const std::string& worker);
    void on_run_ended(const jobs::Assignment& assignment, bool is_good);
    void on_made(const jobs::Assignment& assignment, const AssetId& asset) {
        jobs_[assignment.job].made[asset] = assignment.attempt;
    }

    // One who follows all jobs is told every change that the ledger has, once and in order; or that
    // there is a gap, and reads what is stored.
    class Listener {
        friend class Rules;
        struct Heard {
            std::size_t told = 0;        // of Known::committed
            std::uint64_t sequence = 0;  // the latest that was told or read
            std::uint64_t read = 0;      // the latest that was read
        };
        bool may_miss = false;
        std::map<JobId, Heard> jobs;  // of which the process has told something
    };
    Listener attentive;
    Listener hasty;  // has hardly any room, and misses what comes at once
    void on_told_job(Listener& listener, const events::Arrived& arrived);
    void on_told_change(Listener& listener, const events::Changed& changed);
    void on_gap(Listener& listener);
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
        std::map<AssetId, int> made;  // outputs, by whichever attempt
        // Workers that went down while they ran it, since it was last brought back.
        std::set<std::string> taken_down;
        std::vector<std::uint64_t> committed;  // sequence numbers, since this process knows of it
        std::size_t committed_before = 0;      // by earlier processes
    };

    void check_told(const Listener& listener);
    void check_start(const jobs::Change& change);
    void check_end(const jobs::Change& change);

    const Clock& clock_;
    const ledger::MemoryLedger& stored_;
    std::map<JobId, Known> jobs_;
    std::map<std::pair<std::string, std::string>, Time> keys_;
    bool is_batch_cancelled_ = false;
    std::optional<std::string> broken_;
};

}  // namespace comfyd::simulation
