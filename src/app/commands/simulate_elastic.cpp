#include "app/commands/simulate_elastic.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace comfyd::app {

std::vector<simulate::ElasticJob> elastic_jobs(
    const simulate::Trace& trace, const simulate::GpuType& type
) {
    std::vector<simulate::ElasticJob> jobs;
    const std::int64_t first = trace.jobs.empty() ? 0 : trace.jobs.front().at_ms;
    for (const simulate::TraceJob& job : trace.jobs) {
        const simulate::TraceProfile& profile = trace.profiles[job.profile];
        simulate::ElasticJob& made = jobs.emplace_back();
        made.at_s = static_cast<double>(job.at_ms - first) / 1000;
        made.seconds = profile.seconds * static_cast<double>(job.factor) / type.speed;
        made.wait_class = scheduler::wait_class_of(job.priority, job.batch);
        const auto own = static_cast<std::uint32_t>(trace.profiles.size() + jobs.size());
        made.kind = profile.profile->can_be_merged ? job.profile : own;
    }
    return jobs;
}

namespace {

// To the question that was asked.
std::string answer(
    const simulate::ElasticComparison& all,
    const autoscale::Settings& scaling,
    const simulate::ElasticSettings& settings
) {
    std::array<char, 96> spot{};
    if (settings.spot_hours > 0) {
        std::snprintf(
            spot.data(), spot.size(), ", taken back after %.3g h on average", settings.spot_hours
        );
    }
    const simulate::ElasticOutcome& own = all.own.front();
    std::array<char, 512> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "With %d to %d machines at %.2f USD an hour%s, and up to %d jobs in a run, this would have "
        "cost %.2f USD, and 95 %% of the jobs would have waited for at most %.1f s. The cheapest "
        "fixed fleet that is as quick: %.2f USD.\n",
        scaling.min,
        scaling.max,
        settings.usd_per_hour,
        spot.data(),
        settings.merge_max,
        own.usd,
        own.wait(0.95),
        all.fixed.usd
    );
    return text.data();
}

}  // namespace

Result<std::string> elastic_text(
    const ElasticFlags& flags,
    const std::vector<simulate::ElasticJob>& jobs,
    const simulate::GpuType& type,
    const simulate::ElasticSettings& given
) {
    if (flags.min < 0 || flags.max < 1 || flags.min > flags.max || flags.max > 10'000 ||
        flags.spare < 0 || flags.idle_timeout_s < 0 || !(flags.start_s >= 1) ||
        !(flags.spot_hours >= 0) || !(flags.usd_per_hour >= 0)) {
        return fail(
            Code::invalid_argument,
            "--min is at most --max, which is 1 to 10000, --start-seconds at least 1, and nothing "
            "below 0"
        );
    }
    autoscale::Settings scaling;
    scaling.min = flags.min;
    scaling.max = flags.max;
    scaling.spare = flags.spare;
    scaling.idle_timeout = std::chrono::seconds(flags.idle_timeout_s);
    simulate::ElasticSettings settings = given;
    settings.start_s = flags.start_s;
    settings.spot_hours = flags.spot_hours;
    settings.usd_per_hour = flags.usd_per_hour > 0 ? flags.usd_per_hour : type.usd_per_hour;
    const double span = jobs.empty() ? 0 : jobs.back().at_s - jobs.front().at_s;
    std::array<char, 256> heading{};
    std::snprintf(
        heading.data(),
        heading.size(),
        "%zu jobs in %.0f s on machines at %.2f USD an hour that start in %.0f s. Waits in "
        "seconds, "
        "of jobs with a target; hours are paid ones, idle and start parts of them.\n\n",
        jobs.size(),
        span,
        settings.usd_per_hour,
        settings.start_s
    );
    const simulate::ElasticComparison all = simulate::compare_elastic(jobs, scaling, settings);
    return heading.data() + to_text(all) + "\n" + answer(all, scaling, settings);
}

}  // namespace comfyd::app
