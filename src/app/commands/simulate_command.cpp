#include "app/commands/simulate_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "app/commands/cli.hpp"
#include "app/commands/record_trace.hpp"
#include "simulate/policy.hpp"
#include "simulate/prewarm_gain.hpp"
#include "simulate/report.hpp"

namespace comfyd::app {
namespace {

using simulate::Column;
using simulate::Fleet;
using simulate::Trace;
using Ticks = std::chrono::steady_clock;

constexpr const char* kPrewarmed = " +prewarm";

Result<simulate::GpuTable> load_gpus(const std::string& file) {
    simulate::GpuTable table;
    if (file.empty()) {
        return table;
    }
    std::ifstream in(file);
    if (!in) {
        return fail(Code::invalid_argument, "cannot read '" + file + "'");
    }
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto document = json::parse_object(text);
    if (!document) {
        return fail(Code::invalid_argument, file + ": " + document.error().message);
    }
    if (auto read = table.read(*document); !read) {
        return fail(Code::invalid_argument, file + ": " + read.error().message);
    }
    return table;
}

Result<Trace> load_trace(const SimulateFlags& flags, const simulate::GpuTable& table) {
    const int sources =
        (flags.trace.empty() ? 0 : 1) + (flags.record.empty() ? 0 : 1) + (flags.synthetic ? 1 : 0);
    if (sources != 1) {
        return fail(
            Code::invalid_argument, "say where the jobs come from: --synthetic, --trace or --record"
        );
    }
    if (flags.synthetic) {
        return simulate::make_synthetic(flags.made);
    }
    if (!flags.record.empty()) {
        const simulate::GpuType* type = table.find(flags.recorded_gpu);
        if (type == nullptr) {
            return fail(
                Code::invalid_argument, "there is no GPU type '" + flags.recorded_gpu + "'"
            );
        }
        const Time now = SystemClock().now();
        const auto span =
            Millis(static_cast<std::int64_t>(std::clamp(flags.hours, 0.0, 1e6) * 3'600'000));
        // Also what came in this very millisecond.
        return record_trace(flags.record, now - span, now + Millis(1), *type);
    }
    if (flags.trace == "-") {
        return simulate::read_trace(std::cin);
    }
    std::ifstream in(flags.trace);
    if (!in) {
        return fail(Code::invalid_argument, "cannot read '" + flags.trace + "'");
    }
    return simulate::read_trace(in);
}

Result<> write_file(const std::string& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) {
        return fail(Code::invalid_argument, "cannot write '" + file + "'");
    }
    return {};
}

void change_fleet(const SimulateFlags& flags, Fleet& fleet) {
    for (simulate::GpuType& type : fleet) {
        if (flags.load_mb_per_s > 0) {
            type.load_bytes_per_second = flags.load_mb_per_s * 1e6;
        }
        if (flags.model_memory_gb >= 0) {
            type.model_memory_bytes = static_cast<std::uint64_t>(flags.model_memory_gb * 1e9);
        }
    }
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= list.size();) {
        const auto end = std::min(list.find(',', at), list.size());
        if (end > at) {
            parts.push_back(list.substr(at, end - at));
        }
        at = end + 1;
    }
    return parts;
}

// Tells on standard error how far a long simulation is, on one line.
class Teller {
public:
    Teller(bool quiet, std::string title, std::size_t jobs)
        : quiet_(quiet), title_(std::move(title)), jobs_(jobs), started_(Ticks::now()) {}

    bool operator()(std::uint64_t ended) {
        const auto now = Ticks::now();
        if (!quiet_ && now - told_ > std::chrono::seconds(1) &&
            now - started_ > std::chrono::seconds(2)) {
            told_ = now;
            std::fprintf(
                stderr,
                "%s: %llu of %zu jobs, %.0f a second%s",
                title_.c_str(),
                static_cast<unsigned long long>(ended),
                jobs_,
                static_cast<double>(ended) / std::chrono::duration<double>(now - started_).count(),
                ::isatty(STDERR_FILENO) == 1 ? "    \r" : "\n"
            );
        }
        return true;
    }

private:
    bool quiet_;
    std::string title_;
    std::size_t jobs_;
    Ticks::time_point started_;
    Ticks::time_point told_{};
};

Result<std::vector<Column>> run_all(
    const SimulateFlags& flags,
    const Trace& trace,
    const std::vector<std::pair<std::string, Fleet>>& fleets,
    bool quiet
) {
    std::vector<std::string> policies = split(flags.policies);
    if (std::erase(policies, "bound") > 0 && policies.empty()) {
        policies.emplace_back("finish-time");
    }
    for (const std::string& policy : policies) {
        if (std::ranges::count(simulate::policy_names(), policy) == 0) {
            std::string names;
            for (const std::string& name : simulate::policy_names()) {
                names += names.empty() ? name : ", " + name;
            }
            return fail(
                Code::invalid_argument, "there is no policy '" + policy + "'; there are " + names
            );
        }
    }
    std::vector<Column> columns;
    for (const std::string& policy : policies) {
        for (const auto& [suffix, fleet] : fleets) {
            simulate::Settings settings = flags.settings;
            for (const bool prewarms : {false, true}) {
                if (prewarms && (!flags.prewarm || !simulate::may_prewarm(policy))) {
                    continue;
                }
                settings.prewarms = prewarms;
                const std::string title = policy + suffix + (prewarms ? kPrewarmed : "");
                Teller teller(quiet, title, trace.jobs.size());
                auto outcome = simulate::simulate(
                    trace, fleet, policy, settings, [&](std::uint64_t n) { return teller(n); }
                );
                if (!outcome) {
                    return fail(std::move(outcome.error()));
                }
                columns.push_back(
                    {title, std::move(*outcome), simulate::makespan_bound(trace, fleet)}
                );
            }
        }
    }
    return columns;
}

std::string describe(const Trace& trace, const Fleet& fleet) {
    const double span =
        trace.jobs.empty()
            ? 0
            : static_cast<double>(trace.jobs.back().at_ms - trace.jobs.front().at_ms) / 1000;
    char text[64];
    std::snprintf(text, sizeof text, "%.0f", span);
    return std::to_string(trace.jobs.size()) + " jobs in " + text + " s, " +
           std::to_string(trace.profiles.size()) + " kinds, " +
           std::to_string(trace.tenants.size()) + " tenants, on " +
           simulate::describe_fleet(fleet) +
           ". Speeds, loads and prices of GPU types are assumptions (--gpus changes them).";
}

// Of each pair of columns that differ in it alone.
std::string describe_prewarming(const std::vector<Column>& columns) {
    std::string text;
    for (std::size_t at = 1; at < columns.size(); ++at) {
        if (columns[at].title == columns[at - 1].title + kPrewarmed) {
            const simulate::PrewarmGain gain{
                simulate::PrewarmGain::side_of(columns[at - 1].outcome),
                simulate::PrewarmGain::side_of(columns[at].outcome)
            };
            text += "\n" + columns[at - 1].title + ": " + gain.sentence() + "\n";
        }
    }
    return text;
}

Result<> write_plots(
    const SimulateFlags& flags,
    const std::string& heading,
    const Trace& trace,
    const std::vector<Column>& columns
) {
    if (!flags.svg.empty()) {
        if (auto done = write_file(flags.svg, simulate::to_svg(columns)); !done) {
            return done;
        }
    }
    return flags.html.empty() ? Result<>()
                              : write_file(flags.html, simulate::to_html(heading, trace, columns));
}

// Over what is told, or days that are made up for it.
Result<std::string> simulate_elastic(
    const SimulateFlags& flags, const simulate::GpuTable& table, const simulate::GpuType& type
) {
    if (flags.prewarm || !flags.html.empty() || !flags.svg.empty() || !flags.output.empty()) {
        return fail(
            Code::invalid_argument, "--autoscale goes without --prewarm, --html, --svg and --output"
        );
    }
    simulate::ElasticSettings settings;
    settings.seed = flags.made.seed;
    settings.merge_max = flags.settings.merge_max;
    settings.merge_cost = flags.settings.merge_cost;
    const bool has_source = flags.synthetic || !flags.trace.empty() || !flags.record.empty();
    if (!has_source) {
        constexpr int kDaysMax = 31;
        constexpr double kSpotHours = 4;
        constexpr int kStockOuts = 3;
        ElasticFlags elastic = flags.elastic;
        if (elastic.days < 1 || elastic.days > kDaysMax) {
            return fail(Code::invalid_argument, "--days is 1 to 31");
        }
        elastic.spot_hours = elastic.spot_hours.value_or(kSpotHours);
        elastic.stock_outs = elastic.stock_outs.value_or(kStockOuts);
        return elastic_text(
            elastic, simulate::make_elastic_day(flags.made.seed, elastic.days), type, settings
        );
    }
    const auto trace = load_trace(flags, table);
    if (!trace) {
        return fail(trace.error());
    }
    if (trace->jobs.empty()) {
        return std::string("There are no jobs in this time.\n");
    }
    return elastic_text(flags.elastic, elastic_jobs(*trace, type), type, settings);
}

}  // namespace

Result<std::string> simulate_text(SimulateFlags flags, bool quiet) {
    const auto arrivals = simulate::parse_arrivals(flags.arrivals);
    if (!arrivals) {
        return fail(Code::invalid_argument, "--arrivals is poisson, bursty or at-once");
    }
    flags.made.arrivals = *arrivals;
    flags.settings.seed = flags.made.seed;
    auto table = load_gpus(flags.gpus);
    if (!table) {
        return fail(std::move(table.error()));
    }
    auto fleet = simulate::parse_fleet(flags.fleet, *table);
    if (!fleet) {
        return fail(std::move(fleet.error()));
    }
    change_fleet(flags, *fleet);
    std::vector<std::pair<std::string, Fleet>> fleets{{"", *fleet}};
    if (!flags.add.empty()) {
        auto more = simulate::parse_fleet(flags.add, *table);
        if (!more) {
            return fail(std::move(more.error()));
        }
        change_fleet(flags, *more);
        more->insert(more->begin(), fleet->begin(), fleet->end());
        fleets.emplace_back(" +" + flags.add, std::move(*more));
    }
    if (flags.elastic.is_wanted) {
        return simulate_elastic(flags, *table, fleet->front());
    }
    const auto trace = load_trace(flags, *table);
    if (!trace) {
        return fail(trace.error());
    }
    if (!flags.output.empty()) {
        std::ofstream out(flags.output, std::ios::trunc);
        simulate::write_trace(*trace, out);
        out.close();
        if (!out) {
            return fail(Code::invalid_argument, "cannot write '" + flags.output + "'");
        }
    }
    if (trace->jobs.empty()) {
        return std::string("There are no jobs in this time.\n");
    }
    const auto columns = run_all(flags, *trace, fleets, quiet);
    if (!columns) {
        return fail(columns.error());
    }
    const std::string heading = describe(*trace, *fleet);
    if (auto written = write_plots(flags, heading, *trace, *columns); !written) {
        return fail(std::move(written.error()));
    }
    return heading + "\n\n" + simulate::to_text(simulate::make_table(*trace, *columns)) +
           describe_prewarming(*columns);
}

int run_simulate(SimulateFlags flags) {
    const auto text = simulate_text(std::move(flags), false);
    if (!text) {
        std::fprintf(stderr, "comfyd: %s\n", text.error().message.c_str());
        return text.error().code == Code::invalid_argument ? kExitUsage : kExitUnavailable;
    }
    std::fputs(text->c_str(), stdout);
    return kExitOk;
}

}  // namespace comfyd::app
