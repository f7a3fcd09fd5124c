// Measures what one attempt uses on its worker, from what the worker says while it runs: which node
// it is at, the steps of that node, and readings of its machine. Pure, time is an argument; owned
// by one attempt.
//
// Loading of models is the time in the nodes that name a model file, and in any other node the time
// to its first step beyond what its steps take afterwards: a model comes into GPU memory when a
// sampler first needs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.hpp"
#include "base/time.hpp"
#include "comfy/client.hpp"
#include "comfy/messages.hpp"
#include "jobs/usage.hpp"

namespace comfyd::fleet {

class UsageMeter {
public:
    using Seconds = double;  // of any steady clock

    // `prompt`: the API-format map. `shares_gpu`: other processes are on the worker's GPU, so what
    // is told of the whole GPU says nothing of the run.
    explicit UsageMeter(const json::object& prompt, bool shares_gpu = false);

    void apply(const comfy::Message& message, Seconds now);
    // The worker runs it, whoever said so first.
    void started(Seconds now);
    // The worker is done with it. Only the first call counts.
    void ended(Seconds now);
    // The worker's own word for how long it ran, which counts more than when we heard of it.
    void ran(Millis duration) { own_run_ = duration; }

    // Readings of the machine; those before the start and after the end do not count.
    void sample(const comfy::SystemStats& stats);
    // True once: a node has made its first step, so the memory is in use now.
    bool take_first_step();

    // Complete once ended, but for the pictures.
    jobs::Usage usage(double gpu_second_usd) const;

private:
    // Of what some node packs report.
    struct Mean {
        double sum = 0;
        int count = 0;
        void add(double value);
        std::optional<double> value() const;
    };
    struct Step {
        double value;
        Seconds at;
    };

    void enter(const std::string& node, Seconds now);
    void leave(Seconds now);
    void step(const std::string& node, double value, Seconds now);
    void monitor(const json::object& data);
    // In use on the whole GPU, whoever uses it.
    void whole_gpu(std::optional<std::uint64_t> bytes);
    bool is_running() const { return started_ && !ended_; }

    std::set<std::string, std::less<>> loaders_;
    int models_ = 0;
    bool knows_own_memory_ = false;  // the worker tells of its process alone
    bool shares_gpu_;

    std::optional<Seconds> started_;
    std::optional<Seconds> ended_;
    std::optional<Millis> own_run_;
    std::string node_;  // that runs; empty: none
    Seconds entered_ = 0;
    std::optional<Step> first_;  // of the node that runs
    std::optional<Step> last_;
    bool first_step_taken_ = false;
    Seconds loading_ = 0;
    int loads_ = 0;

    std::optional<std::uint64_t> vram_peak_;
    std::optional<std::uint64_t> ram_peak_;
    Mean gpu_percent_;
    Mean cpu_percent_;
};

}  // namespace comfyd::fleet
