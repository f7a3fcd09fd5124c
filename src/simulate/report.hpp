// What came of simulations, side by side: as a table for the terminal and as plots. Pure.
#pragma once

#include <string>
#include <vector>

#include "simulate/simulator.hpp"
#include "simulate/trace.hpp"

namespace comfyd::simulate {

struct Column {
    std::string title;
    Outcome outcome;
    double bound = 0;  // no schedule on its fleet has a shorter makespan
};

struct Table {
    struct Row {
        std::string label;
        std::vector<std::string> cells;
    };
    std::vector<std::string> titles;
    std::vector<Row> rows;
};

// 0 for none. `part`: 0.95 is the 95th percentile.
double percentile(std::vector<float> values, double part);

Table make_table(const Trace& trace, const std::vector<Column>& columns);
std::string to_text(const Table& table);

// Self-contained; colours follow the reader's choice of dark or light.
std::string to_svg(const std::vector<Column>& columns);
std::string to_html(
    const std::string& heading, const Trace& trace, const std::vector<Column>& columns
);

}  // namespace comfyd::simulate
