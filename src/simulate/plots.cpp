// Plots of simulations: plain SVG, made by hand, because no plotting library is worth its weight
// for three line charts.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "simulate/report.hpp"

namespace comfyd::simulate {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 300;
constexpr double kLeft = 72;
constexpr double kRight = 16;
constexpr double kTop = 48;
constexpr double kBottom = 44;
constexpr std::size_t kColours = 6;

constexpr std::string_view kStyle = R"css(
:root{--ink:#1f2328;--faint:#d8dee4;--paper:#ffffff;
--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;--c5:#6e7781}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--faint:#30363d;--paper:#0d1117;
--c0:#58a6ff;--c1:#f0883e;--c2:#3fb950;--c3:#bc8cff;--c4:#f778ba;--c5:#8b949e}}
text{fill:var(--ink);font:12px system-ui,sans-serif}
.grid{stroke:var(--faint);stroke-width:1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
)css";

struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;
};

struct Chart {
    std::string title;
    std::string x_label;
    std::vector<Series> series;
    bool logarithmic = false;  // upwards
};

std::string escaped(std::string_view text) {
    std::string made;
    for (const char c : text) {
        switch (c) {
            case '&':
                made += "&amp;";
                break;
            case '<':
                made += "&lt;";
                break;
            case '>':
                made += "&gt;";
                break;
            case '"':
                made += "&quot;";
                break;
            default:
                made += c;
        }
    }
    return made;
}

std::string number(double value, const char* format = "%.1f") {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string label(double value) {
    return number(value, "%.6g");
}

// 1, 2 or 5 times a power of ten, so that about five of them make up `span`.
double nice_step(double span) {
    const double raw = std::max(span, 1e-9) / 5;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= raw) {
            return factor * power;
        }
    }
    return 10 * power;
}

class Plotter {
public:
    Plotter(const Chart& chart, double top) : chart_(chart), top_(top) {
        for (const Series& series : chart.series) {
            for (const auto& [x, y] : series.points) {
                x_max_ = std::max(x_max_, x);
                y_max_ = std::max(y_max_, y);
            }
        }
        y_max_ = chart.logarithmic ? std::pow(10.0, std::ceil(std::log10(std::max(y_max_, 1.0))))
                                   : y_max_ * 1.05;
    }

    std::string run() const {
        std::string svg = "<text x=\"" + number(kLeft) + "\" y=\"" + number(top_ + 18) +
                          "\" style=\"font-weight:600;font-size:14px\">" + escaped(chart_.title) +
                          "</text>\n";
        svg += grid() + lines() + legend();
        return svg;
    }

private:
    double x_of(double x) const { return kLeft + x / x_max_ * (kWidth - kLeft - kRight); }
    double y_of(double y) const {
        const double part = chart_.logarithmic ? std::log10(std::max(y, kLogFloor) / kLogFloor) /
                                                     std::log10(y_max_ / kLogFloor)
                                               : y / y_max_;
        return top_ + kHeight - kBottom - part * (kHeight - kTop - kBottom);
    }

    std::string rule(double x1, double y1, double x2, double y2) const {
        return "<line class=\"grid\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
               number(x2) + "\" y2=\"" + number(y2) + "\"/>\n";
    }
    std::string text(double x, double y, const char* anchor, const std::string& words) const {
        return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor +
               "\">" + escaped(words) + "</text>\n";
    }

    std::string grid() const {
        std::string svg;
        std::vector<double> heights;
        if (chart_.logarithmic) {
            for (double y = kLogFloor; y <= y_max_ * 1.0001; y *= 10) {
                heights.push_back(y);
            }
        } else {
            const double step = nice_step(y_max_);
            for (double y = 0; y <= y_max_; y += step) {
                heights.push_back(y);
            }
        }
        for (const double y : heights) {
            svg += rule(kLeft, y_of(y), kWidth - kRight, y_of(y));
            svg += text(kLeft - 8, y_of(y) + 4, "end", label(y));
        }
        const double step = nice_step(x_max_);
        const double bottom = top_ + kHeight - kBottom;
        for (double x = 0; x <= x_max_ * 1.0001; x += step) {
            svg += text(x_of(x), bottom + 18, "middle", label(x));
        }
        return svg + text(kWidth - kRight, bottom + 36, "end", chart_.x_label);
    }

    std::string lines() const {
        std::string svg;
        for (std::size_t at = 0; at < chart_.series.size(); ++at) {
            svg += "<polyline class=\"line\" style=\"stroke:var(--c" +
                   std::to_string(at % kColours) + ")\" points=\"";
            for (const auto& [x, y] : chart_.series[at].points) {
                svg += number(x_of(x)) + "," + number(y_of(y)) + " ";
            }
            svg += "\"/>\n";
        }
        return svg;
    }

    std::string legend() const {
        std::string svg;
        double x = kLeft;
        for (std::size_t at = 0; at < chart_.series.size(); ++at) {
            const std::string& name = chart_.series[at].name;
            svg += "<rect x=\"" + number(x) + "\" y=\"" + number(top_ + 29) +
                   "\" width=\"14\" height=\"4\" style=\"fill:var(--c" +
                   std::to_string(at % kColours) + ")\"/>\n";
            svg += text(x + 20, top_ + 36, "start", name);
            x += 36 + 7.2 * static_cast<double>(name.size());
        }
        return svg;
    }

    static constexpr double kLogFloor = 0.1;

    const Chart& chart_;
    double top_;
    double x_max_ = 1e-9;
    double y_max_ = 1e-9;
};

std::vector<Chart> make_charts(const std::vector<Column>& columns) {
    Chart waiting{"Waiting jobs", "seconds", {}};
    Chart running{"Busy workers, percent (loading included)", "seconds", {}};
    Chart waits{"Wait in seconds, by percentile of jobs", "percentile", {}, true};
    for (const Column& column : columns) {
        Series queue{column.title, {}};
        Series busy{column.title, {}};
        const auto workers = static_cast<double>(std::max<std::size_t>(column.outcome.workers, 1));
        for (const Moment& moment : column.outcome.timeline) {
            queue.points.emplace_back(moment.at, moment.waiting);
            busy.points.emplace_back(moment.at, 100 * moment.running / workers);
        }
        Series by_part{column.title, {}};
        std::vector<float> sorted = column.outcome.waits;
        std::erase_if(sorted, [](float wait) { return wait < 0; });
        std::ranges::sort(sorted);
        for (int part = 0; part <= 100 && !sorted.empty(); ++part) {
            const std::size_t rank = (sorted.size() - 1) * static_cast<std::size_t>(part) / 100;
            by_part.points.emplace_back(part, static_cast<double>(sorted[rank]));
        }
        waiting.series.push_back(std::move(queue));
        running.series.push_back(std::move(busy));
        waits.series.push_back(std::move(by_part));
    }
    return {std::move(waits), std::move(waiting), std::move(running)};
}

std::string draw(const std::vector<Chart>& charts) {
    const double height = kHeight * static_cast<double>(charts.size());
    std::string svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " +
        number(height) + "\" width=\"" + number(kWidth) + "\" height=\"" + number(height) +
        "\" role=\"img\">\n<style>" + std::string(kStyle) +
        "</style>\n<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>\n";
    for (std::size_t at = 0; at < charts.size(); ++at) {
        svg += Plotter(charts[at], kHeight * static_cast<double>(at)).run();
    }
    return svg + "</svg>\n";
}

}  // namespace

std::string to_svg(const std::vector<Column>& columns) {
    return draw(make_charts(columns));
}

std::string to_html(
    const std::string& heading, const Trace& trace, const std::vector<Column>& columns
) {
    const Table table = make_table(trace, columns);
    std::string html =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>comfyd simulate</title>\n"
        "<style>:root{color-scheme:light dark}body{font:15px system-ui,sans-serif;max-width:62rem;"
        "margin:2rem auto;padding:0 1rem;background:var(--paper);color:var(--ink)}"
        "table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .75rem;text-align:right;"
        "border-bottom:1px solid var(--faint);white-space:pre}td:first-child{text-align:left}"
        "svg{max-width:100%;height:auto}</style></head>\n<body><h1>comfyd simulate</h1>\n<p>" +
        escaped(heading) + "</p>\n<table><tr><th></th>";
    for (const std::string& title : table.titles) {
        html += "<th>" + escaped(title) + "</th>";
    }
    html += "</tr>\n";
    for (const Table::Row& row : table.rows) {
        html += "<tr><td>" + escaped(row.label) + "</td>";
        for (const std::string& cell : row.cells) {
            html += "<td>" + escaped(cell) + "</td>";
        }
        html += "</tr>\n";
    }
    return html + "</table>\n" + draw(make_charts(columns)) + "</body></html>\n";
}

}  // namespace comfyd::simulate
