// The inside of the scheduler: order, machines and policy brought together.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/machines.hpp"
#include "scheduler/order.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/profile_table.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::scheduler {

inline constexpr std::array<WaitClass, kWaitClasses> kInOrder{
    WaitClass::high, WaitClass::medium, WaitClass::low, WaitClass::batch
};

inline Time later(Time now, double seconds) {
    constexpr double kLongest = 30.0 * 24 * 3600;
    return now + Millis(static_cast<std::int64_t>(1000 * std::min(seconds, kLongest)));
}

inline double seconds_between(Time from, Time to) {
    return static_cast<double>((to - from).count()) / 1000.0;
}

class Scheduler::Impl {
public:
    Impl(const Estimates& estimates, Options options);

    void set_worker(WorkerState state);
    void remove_worker(const std::string& id);
    void set_models(const std::string& worker, const std::vector<Model>& models);
    Circumstances circumstances(const ProfilePtr& profile);
    void add(const JobId& job, const JobKeys& keys);
    bool remove(const JobId& job);
    std::optional<Decision> next(Time now);
    void running(
        const JobId& job,
        const std::string& worker,
        const JobKeys& keys,
        Time now,
        const std::vector<Decision::Batched>& batched
    );
    double gpu_part(const JobId& job, Time now) const;
    double sharing(const std::string& worker) const;
    void finished(const JobId& job, double gpu_seconds, Time now);

    // Not const, because looking at the first of a queue puts its heap right.
    std::optional<std::size_t> position(const JobId& job, Time now);
    std::optional<double> expected_wait(const JobId& job, Time now);
    std::optional<Explanation> explain(const JobId& job, Time now);
    std::vector<Demand> demands() const;
    std::vector<Backlog> backlog() const;
    std::map<std::string, double> arrived_s();
    WorkerUse use_of(const std::string& worker, Time now) const;
    Warmth warmth(const std::vector<ProfilePtr>& kinds, Time now);
    void warm(const std::string& worker, const ProfilePtr& profile);

    ProfileTable profiles_;
    Order order_;
    Machines machines_;
    std::uint64_t loads_ = 0;

    struct Running {
        Order::Owner owner;
        std::string worker;
        double charged_s = 0;
        Time since{};
        double served_s = 0;  // of its worker's GPU, then
    };
    std::unordered_map<JobId, Running> running_;
    struct Wake {
        Time at;
        Index group;
        friend auto operator<=>(const Wake&, const Wake&) = default;
    };
    std::set<Wake> wakes_;
    struct Deferred {
        Time ask_again;
        std::string waits_for;  // a worker that is worth waiting for
    };
    std::unordered_map<Index, Deferred> wake_of_;  // by group, what stands in wakes_

private:
    // A job, a worker for it, and what was weighed.
    struct Match {
        JobId job;
        Index worker = 0;
        Index profile = 0;
        Why why = Why::only_choice;
        Numbers numbers;
        std::string other_worker;
        Numbers other;
        double queue_s = 0;  // for each that would have its models
    };
    struct Weighed {
        std::optional<Match> match;
        std::optional<Deferred> deferred;
    };

    std::array<WaitClass, kWaitClasses> class_order(Time now);
    std::optional<Match> match_warm(WaitClass wait_class, Time now, bool stays_longer);
    std::optional<Match> best_warm(Index worker, WaitClass wait_class, Time now);
    std::optional<Match> match_in_turn(WaitClass wait_class, Time now, bool may_pass_over);
    std::optional<Match> match_above(const Match& lower, WaitClass wait_class, Time now);
    Weighed weigh(const Order::Head& head, Time now, std::optional<Index> only_worker);
    void list_free(
        const Order::Group& group,
        Time now,
        std::optional<Index> with_results,
        Question& question,
        std::vector<Index>& workers
    ) const;
    // The smaller the better a worker fits to what a request says of its GPU.
    struct Misfit {
        bool has_other_name = false;
        std::uint64_t bytes = 0;
        friend auto operator<=>(const Misfit&, const Misfit&) = default;
    };
    Misfit misfit(Index worker, Index profile) const;
    bool is_as_tight(Index worker, Index other, Index profile) const;
    void keep_tightest(Index profile, Question& question, std::vector<Index>& workers) const;
    static void keep_only(Index worker, Question& question, std::vector<Index>& workers);
    std::optional<Index> worker_with_results(const Order::Head& head) const;
    // Set: the job waits for the worker.
    std::optional<Deferred> prefer_results(
        Index worker,
        const Order::Head& head,
        const std::vector<Index>& workers,
        Question& question,
        Time now
    ) const;
    void list_busy(
        const Order::Group& group, Time now, Question& question, std::vector<Index>& workers
    ) const;
    bool must_avoid(const Order::Group& group, const Machines::Machine& machine) const;
    bool is_about_equal(const Turn& first, const Turn& other, double load_s) const;
    bool can_be_put_off(const Match& match, WaitClass wait_class, Time now);
    bool is_kept_by_own(const Match& match, const Order::Head& head);
    bool is_wanted(const Machines::Machine& machine, WaitClass lowest) const;
    JobId job_to_spread(const Order::Head& head, const Question& question, double load_s) const;
    Numbers numbers_of(const Machines::Machine& machine, Index profile, Time now) const;
    Decision decide(const Match& match, Time now);
    void take(const JobId& job, Index worker, double charged_s, Time now);
    // On its worker, with so many jobs that share it.
    Machines::Run expected_run(const JobId& job, Index worker, Index profile, std::size_t jobs)
        const;
    std::size_t batched_max(const Match& match) const;
    std::size_t gpus_for(const Match& match, Time now) const;
    std::vector<JobId> pick_batched(const Match& match, Time now);
    // Until when a job waits for others that can ride along; nullopt: it does not.
    std::optional<Time> gathers_until(const Order::Head& head, Time now);
    void note_arrival(const JobId& job, const JobKeys& keys);
    std::vector<std::uint64_t> kinds_in(const std::vector<Index>& kinds) const;
    Warmth::Worker warmth_of(
        Index worker,
        const std::vector<Index>& kinds,
        const std::vector<std::uint64_t>& included,
        Time now
    ) const;
    void worker_changed(Index worker);
    void remember_to_ask(Index group, Deferred deferred);
    // How far off the expected waits of some jobs were corrects those of others.
    void note_expected(Time now);
    void note_started(const JobId& job, Time now);
    double raw_wait(const JobId& job, Time now) const;
    std::optional<WaitClass> class_to_help(Time now);
    double capacity_with(Index anchor) const;
    double wait_s(const Order::Place& place, std::size_t ahead, double ahead_s, Time now) const;
    WorkerVerdict judge_worker(const Machines::Machine& machine, Index profile, Time now) const;
    void judge_workers(Index profile, Explanation& explanation, Time now) const;
    void give_reasons(const Order::Place& place, Explanation& explanation) const;

    Options options_;
    std::unique_ptr<Policy> policy_;
    std::vector<Index> dirty_;       // workers that have become free with models loaded
    std::set<Index> changed_kinds_;  // kinds of which one has become free
    int since_ageing_turn_ = 0;
    struct Forecast {
        Time made_at;
        double wait_s = 0;
        WaitClass wait_class = WaitClass::medium;
    };
    std::unordered_map<JobId, Forecast> forecasts_;
    std::optional<JobId> newest_;
    std::uint64_t added_ = 0;
    std::array<double, kWaitClasses> log_off_{};  // of actual against expected, recent ones
    // When jobs of a profile that can be merged came.
    struct Arrivals {
        JobId latest_job{};
        Time latest{};
        Time before{};
        bool is_new = false;  // the latest has not been looked at yet
        Time gathers_until{};
    };
    std::unordered_map<Index, Arrivals> arrivals_;
    std::vector<Index> gathering_;  // groups
    Time late_asked_at_{};
    std::optional<WaitClass> late_class_;  // as of then
    bool has_passed_over_ = false;         // in the latest match_in_turn()
    Time asked_at_{};                      // by the latest next()
};

}  // namespace comfyd::scheduler
