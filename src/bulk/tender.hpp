// Looks after one bulk from its loading to its end: gives items their turn as jobs, notes what
// became of them, cancels them, and tells the end. All that it knows can be read back from the
// store, so any node may go on with it at any moment; where two do for a while, the store lets one
// of them write. Lives on one executor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admission/desk.hpp"
#include "base/task.hpp"
#include "bulk/plan.hpp"
#include "bulk/telling.hpp"
#include "jobs/bulk_store.hpp"

namespace comfyd::bulk {

struct TenderOptions {
    int in_flight_max = 64;                     // jobs of a bulk at a time
    Millis look_again{10'000};                  // at jobs of which nothing was heard
    Millis wait{1'000};                         // before what could not be done is tried again
    Millis worker_patience{10 * 60'000};        // for a worker that has what an item needs
    Millis loading_max{std::chrono::hours(1)};  // then whoever loaded it has gone
    TellingOptions telling{};
};

// What it works with. All of it outlives it.
struct TenderTools {
    Executor executor;
    jobs::BulkStore& store;
    const admission::Desk& desk;
    Messengers messengers;
    std::function<void(const std::string& dialect)> submitted{};  // a job, for metrics
};

class Tender {
public:
    Tender(TenderTools tools, TenderOptions options, jobs::BulkId id);

    const jobs::BulkId& id() const { return id_; }
    // Until nothing is left to do, or the task is cancelled.
    Task<> run();
    // Nothing is begun any more. Before the task is cancelled.
    void stop() { is_stopping_ = true; }
    // The bulk was changed by others.
    void wake() {
        is_changed_ = true;
        changed_.notify();
    }
    // A job has ended. False: it is none of ours.
    bool hear(const jobs::Job& job);
    // What was heard may not be all.
    void look_at_all();

private:
    // An item that is under way.
    struct Flight {
        enum class At {
            reserved,   // its job has an id and was not submitted yet
            uncertain,  // it may have been
            submitted,
        };
        jobs::BulkItem item;
        At at = At::reserved;
        bool is_looked_at = true;  // since something may have been missed
        bool is_stopping = false;
        std::optional<jobs::BulkItem> outcome{};
    };

    Task<Result<bool>> read();
    Task<Result<>> read_plan();
    Task<Result<>> take_up();
    // Each is true when there may be more to do at once.
    Task<Result<bool>> step();
    Task<Result<bool>> step_loading();
    Task<Result<bool>> advance();
    Task<Result<>> look();
    Task<Result<>> look_at(Flight& flight);
    Task<Result<>> add_waiting(std::vector<jobs::ItemMove>& moves);
    Task<Result<bool>> commit(jobs::BulkChange change);
    Task<> submit_all();
    Task<> submit_lane(std::vector<int> indexes);
    Task<> submit(Flight& flight);
    Task<> stop_all();
    Task<Result<bool>> tell();
    void fail_item(Flight& flight, const Error& error);
    bool may_start() const;
    Millis wait_time() const;

    TenderTools tools_;
    const TenderOptions options_;
    const jobs::BulkId id_;
    Signal changed_;
    bool is_stopping_ = false;
    bool is_changed_ = false;        // since the latest step began
    jobs::Bulk bulk_;                // as it was read or written last
    std::optional<Plan> plan_;       // once it was needed
    bool is_taken_up_ = false;       // the flights are those of `bulk_`
    std::map<int, Flight> flights_;  // by index
    std::unordered_map<JobId, int> indexes_;
    Time looked_at_{};
};

}  // namespace comfyd::bulk
