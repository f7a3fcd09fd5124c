// Our rule beside what else there is, over the same jobs: fixed fleets, peers' rules over their
// settings, and what nobody can do for less.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulate/elastic_rules.hpp"

namespace comfyd::simulate {

struct ElasticComparison {
    std::vector<ElasticOutcome> own;  // as asked for, then with other idle timeouts
    std::vector<ElasticOutcome> peers;
    ElasticOutcome fixed;  // the smallest fixed fleet whose 95th percentile is not longer than ours
    double least_usd = 0;
    double foreseen_usd = 0;

    // Peers that are cheaper and quicker than `one`.
    std::vector<const ElasticOutcome*> better_than(const ElasticOutcome& one) const;
};

ElasticComparison compare_elastic(
    const std::vector<ElasticJob>& jobs,
    const autoscale::Settings& scaling,
    const ElasticSettings& settings
);

// The smallest one with this 95th percentile at most, of up to `most`.
ElasticOutcome find_fixed(
    const std::vector<ElasticJob>& jobs, const ElasticSettings& settings, double p95_s, int most
);

std::string to_text(const ElasticComparison& comparison);

}  // namespace comfyd::simulate
