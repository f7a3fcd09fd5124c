#include "simulate/elastic_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace comfyd::simulate {
namespace {

constexpr int kFixedMax = 1'000;

std::string row(const ElasticOutcome& outcome) {
    std::array<char, 256> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "%-30s %9.2f %8.1f %8.1f %8.1f %8.1f %7.1f %7.1f %8llu\n",
        outcome.rule.c_str(),
        outcome.usd,
        outcome.machine_hours,
        outcome.wait(0.5),
        outcome.wait(0.95),
        outcome.wait(0.99),
        outcome.idle_hours,
        outcome.starting_hours,
        static_cast<unsigned long long>(outcome.starts)
    );
    return text.data();
}

}  // namespace

std::vector<const ElasticOutcome*> ElasticComparison::better_than(const ElasticOutcome& one) const {
    std::vector<const ElasticOutcome*> better;
    for (const ElasticOutcome& peer : peers) {
        if (peer.usd < one.usd && peer.wait(0.95) < one.wait(0.95)) {
            better.push_back(&peer);
        }
    }
    return better;
}

// More machines never make anybody wait longer, so the half that holds it is looked at.
ElasticOutcome find_fixed(
    const std::vector<ElasticJob>& jobs, const ElasticSettings& settings, double p95_s, int most
) {
    int low = 1;
    int high = most;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const auto rule = make_fixed_rule(middle);
        const bool does = run_elastic(jobs, *rule, settings).wait(0.95) <= p95_s;
        (does ? high : low) = does ? middle : middle + 1;
    }
    const auto rule = make_fixed_rule(low);
    return run_elastic(jobs, *rule, settings);
}

ElasticComparison compare_elastic(
    const std::vector<ElasticJob>& jobs,
    const autoscale::Settings& scaling,
    const ElasticSettings& settings
) {
    ElasticComparison comparison;
    const auto add_own = [&](Millis idle_timeout) {
        autoscale::Settings own = scaling;
        own.idle_timeout = idle_timeout;
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle_timeout);
        const auto rule =
            make_own_rule(own, "comfyd, idle " + std::to_string(seconds.count()) + " s");
        comparison.own.push_back(run_elastic(jobs, *rule, settings));
    };
    add_own(scaling.idle_timeout);
    for (const int idle_s : {60, 120, 300, 600}) {
        if (std::chrono::seconds(idle_s) != scaling.idle_timeout) {
            add_own(std::chrono::seconds(idle_s));
        }
    }
    for (const ElasticRulePtr& rule : make_peer_rules(scaling.max)) {
        comparison.peers.push_back(run_elastic(jobs, *rule, settings));
    }
    std::ranges::sort(comparison.peers, {}, &ElasticOutcome::usd);
    const double p95_s = comparison.own.front().wait(0.95);
    comparison.fixed = find_fixed(jobs, settings, p95_s, std::max(kFixedMax, scaling.max));
    comparison.least_usd = least_usd(jobs, settings);
    comparison.foreseen_usd = foreseen_usd(jobs, settings);
    return comparison;
}

std::string to_text(const ElasticComparison& comparison) {
    std::string out =
        "rule                                 USD    hours      p50      p95      p99    idle   "
        "start"
        "   starts\n";
    for (const ElasticOutcome& own : comparison.own) {
        out += row(own);
    }
    out += row(comparison.fixed);
    for (const ElasticOutcome& peer : comparison.peers) {
        out += row(peer);
    }
    const ElasticOutcome& own = comparison.own.front();
    std::array<char, 512> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "\nof the cost of the cheapest fixed fleet that is as quick: %.0f %%\n"
        "who knew all beforehand and let nobody wait: %.2f USD; paid only while it works: %.2f "
        "USD\n"
        "machines taken back: %llu, runs lost with them: %llu\n"
        "peers' rules that are both cheaper and quicker: %zu of %zu\n",
        comparison.fixed.usd > 0 ? own.usd / comparison.fixed.usd * 100 : 0,
        comparison.foreseen_usd,
        comparison.least_usd,
        static_cast<unsigned long long>(own.lost),
        static_cast<unsigned long long>(own.repeated),
        comparison.better_than(own).size(),
        comparison.peers.size()
    );
    out += text.data();
    if (const auto never = std::ranges::count_if(own.waits, [](float wait) { return wait < 0; });
        never > 0) {
        out += "jobs that never ran: " + std::to_string(never) + "\n";
    }
    return out;
}

}  // namespace comfyd::simulate
