#include "app/media_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "app/child_environment.hpp"

namespace comfyd::app {
namespace {

constexpr unsigned kProcessesMax = 4;

}  // namespace

media::HelpersOptions media_helpers(const Config& config) {
    media::HelpersOptions options;
    options.processes_max =
        config.outputs_helpers > 0
            ? static_cast<unsigned>(config.outputs_helpers)
            : std::clamp(std::thread::hardware_concurrency() / 2, 1U, kProcessesMax);
    options.time_max = std::chrono::seconds(config.outputs_helper_timeout_s);
    options.command = {
        "the process that reads outputs",
        "/proc/self/exe",
        {"media",
         "--supervisor",
         std::to_string(::getpid()),
         "--memory-mb",
         std::to_string(config.outputs_helper_memory_mb),
         "--time-ms",
         std::to_string(options.time_max.count())},
        child_environment()
    };
    return options;
}

media::ExportOptions export_options(const Config& config) {
    media::ExportOptions options;
    options.allows_private = config.results_allow_private_buckets;
    options.ca_file = config.results_buckets_ca_file;
    return options;
}

}  // namespace comfyd::app
