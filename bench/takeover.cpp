// How long nobody places jobs when the node that leads goes: two nodes over a real PostgreSQL and
// Redis, jobs that wait, and workers that are never idle for long. From the signal to the first
// prompt that the next leader starts.
//
//   bench-takeover [waiting jobs] [rounds]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cluster/cluster.hpp"

namespace comfyd::bench {
namespace {

using support::Cluster;
using support::ClusterOptions;
using support::Http;
using Ticks = std::chrono::steady_clock;

constexpr std::size_t kWorkers = 4;
constexpr auto kUnderWay = std::chrono::milliseconds(20);  // what was sent before has arrived

std::uint64_t started(Cluster& cluster) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < kWorkers; ++i) {
        total += cluster.worker(i).executions().total;
    }
    return total;
}

void submit(Cluster& cluster, int count) {
    std::atomic<int> next{0};
    std::vector<std::thread> clients;
    for (std::size_t i = 0; i < 8; ++i) {
        clients.emplace_back([&cluster, &next, i, count] {
            Http http(cluster.node(i % cluster.size()).url());
            for (int number = next++; number < count; number = next++) {
                const json::object body{
                    {"workflow", support::text_to_image("picture " + std::to_string(number))}
                };
                if (http.post_json("/api/v2/jobs", body).status != 201) {
                    std::fprintf(stderr, "a job was not accepted\n");
                    std::exit(1);
                }
            }
        });
    }
    for (std::thread& client : clients) {
        client.join();
    }
}

double seconds_without_a_leader(int waiting, int signal) {
    ClusterOptions options;
    options.workers = kWorkers;
    options.worker.delay = Millis(50);
    options.arguments = {"--log-level", "error"};
    Cluster cluster(options);
    if (!cluster.wait_ready()) {
        std::fprintf(stderr, "the nodes did not come up\n");
        std::exit(1);
    }
    submit(cluster, waiting);
    const std::size_t leader = cluster.leader().value();
    const auto began = Ticks::now();
    cluster.node(leader).process().kill(signal);
    std::this_thread::sleep_for(kUnderWay);
    const std::uint64_t before = started(cluster);
    while (started(cluster) == before) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const std::chrono::duration<double> time = Ticks::now() - began;
    cluster.node(leader).process().kill(SIGCONT);
    return time.count();
}

void measure(const char* name, int signal, int waiting, int rounds) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        times.push_back(seconds_without_a_leader(waiting, signal));
    }
    std::sort(times.begin(), times.end());
    std::printf(
        "takeover %s waiting=%d rounds=%d median=%.2f s longest=%.2f s\n",
        name,
        waiting,
        rounds,
        times[times.size() / 2],
        times.back()
    );
    std::fflush(stdout);
}

}  // namespace
}  // namespace comfyd::bench

int main(int count, char** arguments) {
    const int waiting = count > 1 ? std::atoi(arguments[1]) : 10'000;
    const int rounds = count > 2 ? std::atoi(arguments[2]) : 5;
    comfyd::bench::measure("sigterm", SIGTERM, waiting, rounds);
    comfyd::bench::measure("kill", SIGKILL, waiting, rounds);
    comfyd::bench::measure("sigstop", SIGSTOP, waiting, rounds);
}
