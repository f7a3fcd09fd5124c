// Many models on few workers, in real time: how long a policy takes for all jobs, and how often it
// makes workers load another model.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace comfyd::bench {

struct ManyModels {
    int run_ms = 0;
    int load_ms = 0;
    int models = 0;
    int jobs = 0;
    std::vector<std::string> workers;  // protocol doubles
};

// Which model each job needs: by Zipf's law, in the same order each time.
std::vector<std::size_t> zipf_models(const ManyModels& setup);
json::object picture_with(std::size_t model, const std::string& text);
void print_placement(
    const ManyModels& setup, double makespan_s, const std::vector<double>& waits_s
);

// Submits all jobs at once to the comfyd at `url`; prints one line.
int place_many_models(const std::string& url, const ManyModels& setup);
// The same jobs on the same workers by SwarmUI's pressure rule, without comfyd.
int place_by_pressure(const ManyModels& setup);

}  // namespace comfyd::bench
