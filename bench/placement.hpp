// Many models on few workers, in real time: how long a policy takes for all jobs, and how often it
// makes workers load another model.
#pragma once

#include <string>
#include <vector>

namespace comfyd::bench {

struct ManyModels {
    std::string url;  // of comfyd
    int run_ms = 0;
    int load_ms = 0;
    int models = 0;
    int jobs = 0;
    std::vector<std::string> workers;  // protocol doubles
};

// Submits all jobs at once, the models by Zipf's law in the same order each time; prints one line.
int place_many_models(const ManyModels& setup);

}  // namespace comfyd::bench
