#include "app/commands/simulate_elastic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
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
    std::array<char, 128> spot{};
    if (settings.spot_hours > 0) {
        std::snprintf(
            spot.data(), spot.size(), ", taken back after %.3g h on average", settings.spot_hours
        );
    }
    std::array<char, 64> stock{};
    if (!settings.no_stock.empty()) {
        std::snprintf(
            stock.data(), stock.size(), ", %zu times out of stock", settings.no_stock.size()
        );
    }
    const simulate::ElasticOutcome& own = all.own.front();
    std::array<char, 512> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "With %d to %d machines at %.2f USD an hour%s%s, and up to %d jobs in a run, this would "
        "have "
        "cost %.2f USD, and 95 %% of the jobs would have waited for at most %.1f s. The cheapest "
        "fixed fleet that is as quick: %.2f USD.\n",
        scaling.min,
        scaling.max,
        settings.usd_per_hour,
        spot.data(),
        stock.data(),
        settings.merge_max,
        own.usd,
        own.wait(0.95),
        all.fixed.usd
    );
    return text.data();
}

}  // namespace

namespace {

constexpr double kStartMost = 3'600;
constexpr double kSpotLeast = 0.1;  // jobs would hardly ever come to their end before
constexpr int kMachinesMax = 10'000;
constexpr int kMergeMax = 1'000;
constexpr int kStockOutsMax = 100;

Result<> check(const ElasticFlags& flags, const simulate::ElasticSettings& settings) {
    const double spot_hours = flags.spot_hours.value_or(0);
    const int stock_outs = flags.stock_outs.value_or(0);
    const auto within = [](double value, double least, double most) {
        return value >= least && value <= most;
    };
    const auto wrong = [](const char* what) { return fail(Code::invalid_argument, what); };
    if (!within(flags.max, 1, kMachinesMax) || !within(flags.min, 0, flags.max)) {
        return wrong("--max is 1 to 10000, and --min is 0 to --max");
    }
    if (flags.spare < 0 || flags.idle_timeout_s < 0) {
        return wrong("--spare and --idle-timeout are not below 0");
    }
    if (!within(flags.start_s, 1, kStartMost)) {
        return wrong("--start-seconds is 1 to 3600");
    }
    if (spot_hours != 0 && !(spot_hours >= kSpotLeast)) {
        return wrong("--spot-hours is 0 (never taken back), or 0.1 and more");
    }
    if (!within(stock_outs, 0, kStockOutsMax)) {
        return wrong("--stock-outs is 0 to 100 a day");
    }
    if (!(flags.usd_per_hour >= 0)) {
        return wrong("--usd-per-hour is not below 0");
    }
    if (!within(settings.merge_max, 1, kMergeMax) || !(settings.merge_cost >= 0)) {
        return wrong("--merge is 1 to 1000, and --merge-cost not below 0");
    }
    return {};
}

}  // namespace

Result<std::string> elastic_text(
    const ElasticFlags& flags,
    const std::vector<simulate::ElasticJob>& jobs,
    const simulate::GpuType& type,
    const simulate::ElasticSettings& given
) {
    if (auto checked = check(flags, given); !checked) {
        return fail(std::move(checked.error()));
    }
    autoscale::Settings scaling;
    scaling.min = flags.min;
    scaling.max = flags.max;
    scaling.spare = flags.spare;
    scaling.idle_timeout = std::chrono::seconds(flags.idle_timeout_s);
    simulate::ElasticSettings settings = given;
    settings.start_s = flags.start_s;
    settings.spot_hours = flags.spot_hours.value_or(0);
    settings.usd_per_hour = flags.usd_per_hour > 0 ? flags.usd_per_hour : type.usd_per_hour;
    const double span = jobs.empty() ? 0 : jobs.back().at_s - jobs.front().at_s;
    constexpr double kDay = 86'400;
    settings.no_stock = simulate::make_stock_outs(
        settings.seed, std::ceil(span / kDay), flags.stock_outs.value_or(0)
    );
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
