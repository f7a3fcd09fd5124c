#include "simulate/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>

#include "scheduler/scheduler.hpp"

namespace comfyd::simulate {
namespace {

constexpr std::size_t kTenantsShown = 5;

std::string number(double value) {
    char text[64];
    const char* format = "%.3g";
    const double size = std::abs(value);
    if (size >= 1000) {
        format = "%.0f";
    } else if (size >= 100) {
        format = "%.1f";
    } else if (size >= 1) {
        format = "%.2f";
    }
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string seconds(double value) {
    return number(value) + " s";
}

std::string percent(double part) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", part * 100);
    return text;
}

class TableMaker {
public:
    TableMaker(const Trace& trace, const std::vector<Column>& columns)
        : trace_(trace), columns_(columns) {}

    Table run() {
        for (const Column& column : columns_) {
            table_.titles.push_back(column.title);
        }
        row("makespan", [](const Column& c) { return seconds(c.outcome.makespan); });
        row("  lower bound", [](const Column& c) { return seconds(c.bound); });
        row("  times the bound", [](const Column& c) {
            return c.bound > 0 ? number(c.outcome.makespan / c.bound) : std::string("-");
        });
        add_waits("wait", [](const TraceJob&) { return true; });
        add_classes();
        add_tenants();
        row("time to result p95",
            [](const Column& c) { return seconds(percentile(c.outcome.turnarounds, 0.95)); });
        if (std::ranges::any_of(columns_, [](const Column& c) { return c.outcome.prewarms > 0; })) {
            row("  mean", [](const Column& c) { return seconds(c.outcome.mean_turnaround()); });
            row("loads ahead of jobs",
                [](const Column& c) { return std::to_string(c.outcome.prewarms); });
        }
        row("workers running", [](const Column& c) { return percent(c.outcome.utilisation()); });
        row("  loading models", [](const Column& c) {
            const double all = c.outcome.makespan * static_cast<double>(c.outcome.workers);
            return percent(all > 0 ? c.outcome.load_seconds / all : 0);
        });
        if (std::ranges::any_of(trace_.jobs, [](const TraceJob& job) {
                return job.content != 0;
            })) {
            row("answered from results",
                [](const Column& c) { return std::to_string(c.outcome.repeated); });
        }
        row("model loads", [](const Column& c) { return std::to_string(c.outcome.loads); });
        row("GPU-seconds", [](const Column& c) { return number(c.outcome.gpu_seconds()); });
        row("images a GPU-second",
            [](const Column& c) { return number(c.outcome.images_per_gpu_second()); });
        row("cost of the fleet", [](const Column& c) { return number(c.outcome.usd) + " USD"; });
        row("  of 1,000 images", [](const Column& c) {
            return c.outcome.images > 0 ? number(c.outcome.usd / c.outcome.images * 1000) + " USD"
                                        : std::string("-");
        });
        add_failures();
        row("error of predicted runs",
            [](const Column& c) { return percent(c.outcome.run_error); });
        return std::move(table_);
    }

private:
    void row(std::string label, const std::function<std::string(const Column&)>& cell) {
        Table::Row made{std::move(label), {}};
        for (const Column& column : columns_) {
            made.cells.push_back(cell(column));
        }
        table_.rows.push_back(std::move(made));
    }

    void add_waits(const std::string& label, const std::function<bool(const TraceJob&)>& counts) {
        row(label + " p50 / p95 / p99", [&](const Column& column) {
            std::vector<float> waits;
            for (std::size_t at = 0; at < trace_.jobs.size(); ++at) {
                if (counts(trace_.jobs[at])) {
                    waits.push_back(column.outcome.waits[at]);
                }
            }
            return number(percentile(waits, 0.5)) + " / " + number(percentile(waits, 0.95)) +
                   " / " + number(percentile(waits, 0.99)) + " s";
        });
    }

    void add_classes() {
        std::array<std::size_t, scheduler::kWaitClasses> counts{};
        for (const TraceJob& job : trace_.jobs) {
            ++counts[static_cast<std::size_t>(scheduler::wait_class_of(job.priority, job.batch))];
        }
        if (std::ranges::count_if(counts, [](std::size_t count) { return count > 0; }) < 2) {
            return;
        }
        for (std::size_t at = 0; at < counts.size(); ++at) {
            const auto wait_class = static_cast<scheduler::WaitClass>(at);
            if (counts[at] > 0) {
                add_waits("  " + std::string(to_string(wait_class)), [=](const TraceJob& job) {
                    return scheduler::wait_class_of(job.priority, job.batch) == wait_class;
                });
            }
        }
    }

    void add_tenants() {
        if (trace_.tenants.size() < 2) {
            return;
        }
        std::vector<std::size_t> counts(trace_.tenants.size());
        for (const TraceJob& job : trace_.jobs) {
            ++counts[job.tenant];
        }
        std::vector<std::uint32_t> largest(counts.size());
        std::iota(largest.begin(), largest.end(), 0U);
        std::ranges::sort(largest, [&](std::uint32_t left, std::uint32_t right) {
            return counts[left] != counts[right] ? counts[left] > counts[right] : left < right;
        });
        largest.resize(std::min(largest.size(), kTenantsShown));
        for (const std::uint32_t tenant : largest) {
            add_waits("  " + trace_.tenants[tenant], [=](const TraceJob& job) {
                return job.tenant == tenant;
            });
        }
    }

    void add_failures() {
        const auto any = [this](auto count) {
            return std::ranges::any_of(columns_, [&](const Column& column) {
                return count(column.outcome) > 0;
            });
        };
        const auto never_ran = [](const Outcome& outcome) {
            return std::ranges::count_if(outcome.waits, [](float wait) { return wait < 0; });
        };
        if (any([](const Outcome& outcome) { return outcome.failed_runs; })) {
            row("failed runs / jobs", [](const Column& column) {
                return std::to_string(column.outcome.failed_runs) + " / " +
                       std::to_string(column.outcome.failed_jobs);
            });
        }
        if (any(never_ran)) {
            row("jobs that never ran",
                [&](const Column& column) { return std::to_string(never_ran(column.outcome)); });
        }
    }

    const Trace& trace_;
    const std::vector<Column>& columns_;
    Table table_;
};

}  // namespace

double percentile(std::vector<float> values, double part) {
    std::erase_if(values, [](float value) { return value < 0; });
    if (values.empty()) {
        return 0;
    }
    const auto rank = static_cast<std::size_t>(std::clamp(
        std::ceil(part * static_cast<double>(values.size())) - 1,
        0.0,
        static_cast<double>(values.size() - 1)
    ));
    std::nth_element(
        values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end()
    );
    return static_cast<double>(values[rank]);
}

Table make_table(const Trace& trace, const std::vector<Column>& columns) {
    return TableMaker(trace, columns).run();
}

std::string to_text(const Table& table) {
    std::size_t label_width = 0;
    std::vector<std::size_t> widths;
    for (const std::string& title : table.titles) {
        widths.push_back(title.size());
    }
    for (const Table::Row& row : table.rows) {
        label_width = std::max(label_width, row.label.size());
        for (std::size_t at = 0; at < row.cells.size(); ++at) {
            widths[at] = std::max(widths[at], row.cells[at].size());
        }
    }
    const auto line = [&](const std::string& label, const std::vector<std::string>& cells) {
        std::string text = label + std::string(label_width - label.size(), ' ');
        for (std::size_t at = 0; at < cells.size(); ++at) {
            text += "  " + std::string(widths[at] - cells[at].size(), ' ') + cells[at];
        }
        return text + "\n";
    };
    std::string text = line("", table.titles);
    for (const Table::Row& row : table.rows) {
        text += line(row.label, row.cells);
    }
    return text;
}

}  // namespace comfyd::simulate
