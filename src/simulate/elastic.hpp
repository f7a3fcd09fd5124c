// A day of jobs on machines that a rule starts and stops, in virtual time: what it costs and how
// long jobs wait. Machines take time to start, and are paid from their order to their end; spot
// ones are taken back, offers are out of stock at times. One job at a time on each, or several of
// one kind in a merged run; by class, then as they came. The same inputs give the same outcome.
//
// Only idle machines are ever stopped, whatever the rule: peers that kill busy ones are not made to
// pay for it here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autoscale/decide.hpp"

namespace comfyd::simulate {

struct ElasticJob {
    double at_s = 0;
    double seconds = 0;  // of GPU time
    scheduler::WaitClass wait_class = scheduler::WaitClass::medium;
    std::uint32_t kind = 0;  // those of one may be merged
};

struct ElasticSettings {
    std::uint64_t seed = 1;
    double start_s = 90;  // on average; a fifth more or less
    double usd_per_hour = 1;
    double spot_hours = 0;  // until a machine is taken back, on average; 0: never
    double notice_s = 30;   // before that
    std::vector<std::pair<double, double>> no_stock{};  // from and to, seconds
    int merge_max = 1;
    double merge_cost = 0.3;  // of each further job in a merged run
};

// What a rule sees at its looks.
struct ElasticSight {
    Time now{};
    double oldest_wait_s = 0;
    std::size_t queued = 0;
    std::size_t running = 0;
    const autoscale::PoolView& pool;  // the same in full
};

class ElasticRule {
public:
    virtual ~ElasticRule() = default;
    virtual std::string name() const = 0;
    virtual double look_every_s() const { return 1; }
    // Of those that it wants less, only those that have idled for so long go.
    virtual double idle_s() const { return 0; }
    virtual int machines(const ElasticSight& sight) = 0;
    // Whether at its latest look also those that work shall go, once they have ended their jobs.
    virtual bool drains() const { return false; }
    virtual void machine_started(double seconds) { static_cast<void>(seconds); }
};

struct ElasticOutcome {
    std::string rule;
    double usd = 0;
    double machine_hours = 0;
    std::vector<double> usd_by_day{};  // from the first midnight
    double idle_hours = 0;             // paid, ready and without a job
    double starting_hours = 0;         // paid before they were ready
    std::vector<float> waits;          // by job, until the run that it ended with; below 0: never
    std::uint64_t starts = 0;
    std::uint64_t lost = 0;      // machines that were taken back
    std::uint64_t repeated = 0;  // runs that were lost with one
    int most = 0;                // machines at a time
    std::uint64_t turns = 0;     // from growing to shrinking within a minute: flapping

    // Of jobs that have a target.
    double wait(double part) const;
    std::vector<scheduler::WaitClass> classes{};
};

ElasticOutcome run_elastic(
    const std::vector<ElasticJob>& jobs, ElasticRule& rule, const ElasticSettings& settings
);

// What is paid where every machine is paid only while it works and is there at once: nobody can do
// it for less.
double least_usd(const std::vector<ElasticJob>& jobs, const ElasticSettings& settings);
// What it costs at least that nobody waits, where all is known beforehand: machines are ordered so
// early that they are ready in time, and stopped where a start costs less than the time until they
// are needed. Jobs are in the order in which they come, and are not merged.
double foreseen_usd(const std::vector<ElasticJob>& jobs, const ElasticSettings& settings);

// Times of 5 to 20 minutes by day in which no machine is to be had.
std::vector<std::pair<double, double>> make_stock_outs(
    std::uint64_t seed, double days, int each_day
);

// A day with a quiet night, a wave by day, ten bursts and one job in eight of one to two and a half
// minutes among many of seconds.
std::vector<ElasticJob> make_elastic_day(std::uint64_t seed, int days = 1);

}  // namespace comfyd::simulate
