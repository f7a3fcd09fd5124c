// Made-up days, and what can be said of any day without running it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <queue>

#include "simulate/elastic.hpp"
#include "simulate/random.hpp"

namespace comfyd::simulate {
namespace {

using scheduler::WaitClass;

constexpr double kHour = 3600;
constexpr double kDay = 86'400;

}  // namespace

// As many of a kind as there are, in the largest runs that there may be.
double least_usd(const std::vector<ElasticJob>& jobs, const ElasticSettings& settings) {
    std::map<std::uint32_t, double> of_kind;
    for (const ElasticJob& job : jobs) {
        of_kind[job.kind] += 1;
    }
    double seconds = 0;
    for (const ElasticJob& job : jobs) {
        const double together = std::clamp<double>(settings.merge_max, 1, of_kind[job.kind]);
        const double part = (1 + settings.merge_cost * (together - 1)) / together;
        seconds += job.seconds * std::min(part, 1.0);
    }
    return seconds / kHour * settings.usd_per_hour;
}

// The machine that became free last takes the next job: so its gaps are as unequal as can be, and
// each costs its length, or a start where that is less.
double foreseen_usd(const std::vector<ElasticJob>& jobs, const ElasticSettings& settings) {
    std::priority_queue<double, std::vector<double>, std::greater<>> ends;
    std::vector<double> idle_since;
    double seconds = 0;
    for (const ElasticJob& job : jobs) {
        for (; !ends.empty() && ends.top() <= job.at_s; ends.pop()) {
            idle_since.push_back(ends.top());
        }
        double gap = settings.start_s;
        if (!idle_since.empty()) {
            gap = std::min(gap, job.at_s - idle_since.back());
            idle_since.pop_back();
        }
        seconds += gap + job.seconds;
        ends.push(job.at_s + job.seconds);
    }
    return seconds / kHour * settings.usd_per_hour;
}

std::vector<std::pair<double, double>> make_stock_outs(
    std::uint64_t seed, double days, int each_day
) {
    constexpr double kShortest = 300;
    constexpr double kLongest = 1'200;
    constexpr double kDawn = 0.25 * kDay;  // at night nobody would notice
    Random random(seed + 0x5709);
    std::vector<std::pair<double, double>> spans;
    for (double day = 0; day < days; ++day) {
        for (int i = 0; i < each_day; ++i) {
            const double begin = day * kDay + kDawn + (kDay - kDawn) * random.uniform();
            const double length = kShortest + (kLongest - kShortest) * random.uniform();
            spans.emplace_back(begin, begin + length);
        }
    }
    return spans;
}

std::vector<ElasticJob> make_elastic_day(std::uint64_t seed, int days) {
    constexpr int kBursts = 10;
    constexpr double kBusiest = 0.55;  // jobs a second at noon
    Random random(seed);
    std::vector<std::pair<double, double>> bursts;
    for (int i = 0; i < kBursts * days; ++i) {
        const double day = std::floor(static_cast<double>(i) / kBursts);
        const double begin = (day + 0.3 + 0.6 * random.uniform()) * kDay;
        bursts.emplace_back(begin, begin + 60 + 240 * random.uniform());
    }
    std::vector<ElasticJob> jobs;
    for (double now = 0; now < days * kDay;) {
        const double hour = std::fmod(now, kDay) / kHour;
        double rate = 0.002;  // at night
        if (hour >= 6.5) {
            rate = kBusiest * std::max(0.05, std::sin((hour - 6.5) / 17.5 * std::numbers::pi));
        }
        const bool is_burst = std::ranges::any_of(bursts, [now](const auto& span) {
            return now >= span.first && now < span.second;
        });
        rate *= is_burst ? 5 : 1;
        now += random.exponential(1 / rate);
        ElasticJob job;
        job.at_s = now;
        const bool is_long = random.uniform() < 0.12;
        job.seconds =
            is_long ? 60 + 90 * random.uniform() : 4 * std::exp(0.5 * random.normal() - 0.125);
        job.kind = static_cast<std::uint32_t>(jobs.size());  // none is like another
        const double chance = random.uniform();
        job.wait_class = chance < 0.2    ? WaitClass::high
                         : chance < 0.8  ? WaitClass::medium
                         : chance < 0.95 ? WaitClass::low
                                         : WaitClass::batch;
        jobs.push_back(job);
    }
    return jobs;
}

}  // namespace comfyd::simulate
