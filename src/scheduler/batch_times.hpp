// How long merged runs of one shape take on one type of GPU by the number of their jobs, learned
// from such runs, and how many jobs are worth being merged. A plain value; bounded.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "base/json.hpp"
#include "base/recent_median.hpp"

namespace comfyd::scheduler {

class BatchTimes {
public:
    // Runs of one job, and of more than can be told apart, are ignored.
    void learn(int jobs, double seconds);
    bool empty() const { return sizes_.empty(); }

    // Of a run of so many, where a job alone takes `alone_s`: what was measured, with straight
    // lines in between.
    double seconds(int jobs, double alone_s) const;

    // Of a job alone, judged by merged runs; nullopt: none were learned.
    std::optional<double> alone_seconds() const;

    json::array to_json() const;
    static BatchTimes from_json(const json::value& from);

private:
    static constexpr int kJobsMax = 64;
    static constexpr std::size_t kRecent = 9;
    // The first run of a size also prepares the GPU for it.
    static constexpr std::size_t kSamplesMin = 2;

    std::map<int, RecentMedian<kRecent>> sizes_;  // log seconds by number of jobs, from 2
};

// The largest number up to `most` of which every job still brings enough throughput for what the
// others wait longer. `seconds_of(n)`: of a run of n jobs.
template <class SecondsOf>
int worthwhile_batch(int most, SecondsOf seconds_of) {
    constexpr double kFirstGain = 0.1;  // a run of two makes the first job wait for most
    constexpr double kGain = 0.02;
    int jobs = 1;
    for (double seconds = seconds_of(1); jobs < most; ++jobs) {
        const double longer = seconds_of(jobs + 1);
        const double gain = jobs == 1 ? kFirstGain : kGain;
        if ((jobs + 1) * seconds < jobs * longer * (1 + gain)) {
            break;
        }
        seconds = longer;
    }
    return jobs;
}

}  // namespace comfyd::scheduler
