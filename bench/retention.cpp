// Does anything grow? Puts jobs of several APIs through one comfyd with the embedded engine and a
// retention of some seconds, and prints its resident memory and the size of its data folder on the
// way.
//
//   bench-retention 1000000       every job runs
//   bench-retention 1000000 10    one of ten does, the others are answered with its outputs
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/comfyd.hpp"

namespace comfyd::bench {
namespace {

namespace fs = std::filesystem;
using support::Comfyd;
using support::ComfydOptions;
using support::Http;

constexpr int kClients = 32;
constexpr int kStep = 10'000;
constexpr int kColors = 1 << 24;

double resident_mb(pid_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            return std::stod(line.substr(6)) / 1024;
        }
    }
    return 0;
}

double folder_mb(const std::string& folder) {
    double bytes = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        std::error_code gone;
        const auto size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
        bytes += gone ? 0 : static_cast<double>(size);
    }
    return bytes / (1024 * 1024);
}

// By one API after the other; each answer but that of the last comes when the job has ended.
bool run_one(Http& http, int number, int same) {
    const json::object workflow = support::small_picture(number / same % kColors);
    const bool reuse = same > 1;
    switch (number % 4) {
        case 0:
            return http
                .post_json(
                    "/v2/workflows/execute?wait=60", {{"workflow", workflow}, {"reuse", reuse}}
                )
                .ok();
        case 1:
            return http
                .post_json(
                    "/prompt_sync", {{"prompt", workflow}, {"client_id", "bench"}, {"reuse", reuse}}
                )
                .ok();
        case 2:
            return http
                .post_json(
                    "/runpod/v2/bench/runsync",
                    {{"input", {{"workflow", workflow}}}, {"policy", {{"reuse", reuse}}}}
                )
                .ok();
        default:
            return http.post_json("/api/v2/jobs", {{"workflow", workflow}, {"reuse", reuse}}).ok();
    }
}

// `same`: so many jobs ask for the same picture.
int run(int jobs, int same) {
    ComfydOptions options;
    options.arguments = {"--log-level", "warning", "--set", "retention_days=0.0002"};
    Comfyd comfyd(options);
    const pid_t process = comfyd.process().pid();
    std::atomic<int> next{0};
    std::atomic<int> failed{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.emplace_back([&] {
            Http http(comfyd.url());
            for (int number = next++; number < jobs; number = next++) {
                failed += run_one(http, number, same) ? 0 : 1;
                if (number > 0 && number % kStep == 0) {
                    std::printf(
                        "%8d jobs: %7.1f MB resident, %7.1f MB of data\n",
                        number,
                        resident_mb(process),
                        folder_mb(comfyd.data())
                    );
                    std::fflush(stdout);
                }
            }
        });
    }
    for (std::thread& client : clients) {
        client.join();
    }
    std::printf(
        "%8d jobs: %7.1f MB resident, %7.1f MB of data, %d failed\n",
        jobs,
        resident_mb(process),
        folder_mb(comfyd.data()),
        failed.load()
    );
    return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace comfyd::bench

int main(int count, char** arguments) {
    const int jobs = count > 1 ? std::atoi(arguments[1]) : 1'000'000;
    const int same = count > 2 ? std::max(1, std::atoi(arguments[2])) : 1;
    return comfyd::bench::run(jobs, same);
}
