// `comfyd simulate`: answers "what if" about fleets and policies from a recorded or made-up trace,
// with the real scheduler in virtual time. Needs no server.
#pragma once

#include <string>
#include <vector>

#include "app/commands/simulate_elastic.hpp"
#include "base/error.hpp"
#include "simulate/simulator.hpp"
#include "simulate/synthetic.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct SimulateFlags {
    // Where the jobs come from: one of these.
    std::string trace{};   // a file; "-" is standard input
    std::string record{};  // a data folder
    bool synthetic = false;

    simulate::SyntheticOptions made{};
    std::string arrivals = "poisson";
    std::string fleet = "8xL40S";
    std::string add{};   // workers more, for a second column of each policy
    std::string gpus{};  // a file with types of GPU
    std::string policies = "finish-time";
    double load_mb_per_s = 0;     // of all types; 0: each its own
    double model_memory_gb = -1;  // likewise; below 0: each its own
    simulate::Settings settings{};
    bool prewarm = false;    // each policy once more, with models that are loaded ahead of jobs
    ElasticFlags elastic{};  // machines that are started and stopped, instead of a fleet

    std::string recorded_gpu = "L40S";  // of the workers that ran what is recorded
    double hours = 24;                  // back from now, of what is recorded

    std::string output{};  // the trace, as a file
    std::string html{};
    std::string svg{};
};

void add_simulate_flags(CLI::App& command, SimulateFlags& flags);
int run_simulate(SimulateFlags flags);  // an Exit code

// What it prints, for tests; files are written. `quiet`: nothing on standard error.
Result<std::string> simulate_text(SimulateFlags flags, bool quiet);

}  // namespace comfyd::app
