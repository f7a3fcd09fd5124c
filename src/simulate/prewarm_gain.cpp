#include "simulate/prewarm_gain.hpp"

#include <array>
#include <cstdio>

#include "simulate/report.hpp"

namespace comfyd::simulate {
namespace {

constexpr double kBetter = 0.99;
constexpr double kNoWorse = 1.01;
constexpr double kLoadsMax = 1.5;

}  // namespace

PrewarmGain::Side PrewarmGain::side_of(const Outcome& outcome) {
    return {outcome.mean_turnaround(), percentile(outcome.turnarounds, 0.95), outcome.loads};
}

bool PrewarmGain::is_gain() const {
    const bool is_better =
        with.mean_s <= kBetter * without.mean_s || with.p95_s <= kBetter * without.p95_s;
    const bool is_no_worse =
        with.mean_s <= kNoWorse * without.mean_s && with.p95_s <= kNoWorse * without.p95_s;
    return is_better && is_no_worse &&
           static_cast<double>(with.loads) <= kLoadsMax * static_cast<double>(without.loads);
}

std::string PrewarmGain::sentence() const {
    std::array<char, 320> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "Loading models ahead of jobs %s here: until the result %.2f s instead of %.2f s (mean), "
        "%.2f s instead of %.2f s (95th percentile), with %llu loads instead of %llu.",
        is_gain() ? "pays" : "does not pay",
        with.mean_s,
        without.mean_s,
        with.p95_s,
        without.p95_s,
        static_cast<unsigned long long>(with.loads),
        static_cast<unsigned long long>(without.loads)
    );
    return text.data();
}

Result<PrewarmGain> find_prewarm_gain(
    const Trace& trace,
    const Fleet& fleet,
    const std::string& policy,
    Settings settings,
    const Progress& progress
) {
    PrewarmGain gain;
    for (PrewarmGain::Side* side : {&gain.without, &gain.with}) {
        settings.prewarms = side == &gain.with;
        auto outcome = simulate(trace, fleet, policy, settings, progress);
        if (!outcome) {
            return fail(std::move(outcome.error()));
        }
        *side = PrewarmGain::side_of(*outcome);
    }
    return gain;
}

}  // namespace comfyd::simulate
