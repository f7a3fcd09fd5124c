// How long an event takes to the stream of a node that does not lead: jobs are watched on both
// nodes of a cluster, and the end of each is timed where it arrives. What is printed is how much
// later it came to the other node than to the one that leads.
//
//   bench-relay [jobs with Redis] [jobs without]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cluster/cluster.hpp"

namespace comfyd::bench {
namespace {

using support::Cluster;
using support::ClusterOptions;
using support::Http;
using support::SseEvent;
using Ticks = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
}

Ticks::time_point end_of(support::EventStream& stream) {
    const auto is_end = [](const SseEvent& event) {
        return event.data.find("\"completed\"") != std::string::npos;
    };
    if (!stream.wait_for(is_end)) {
        give_up("a job did not end");
    }
    return Ticks::now();
}

double milliseconds_later(Http& leader, Http& other) {
    const auto reply = other.post_json(
        "/v2/workflows/execute", {{"workflow", support::text_to_image("a picture")}}
    );
    if (reply.status != 202) {
        give_up("a job was not accepted");
    }
    const std::string path = "/v2/workflows/execution/" +
                             std::string(reply.json_at("/execution_id").as_string()) + "/events";
    const auto here = leader.events(path);
    const auto there = other.events(path);
    Ticks::time_point at_leader;
    std::thread watch([&] { at_leader = end_of(*here); });
    const Ticks::time_point at_other = end_of(*there);
    watch.join();
    return std::chrono::duration<double, std::milli>(at_other - at_leader).count();
}

void measure(const char* name, bool redis, int jobs) {
    ClusterOptions options;
    options.redis = redis;
    options.workers = 1;
    options.worker.delay = Millis(200);  // both are listening by then
    options.arguments = {"--log-level", "error"};
    Cluster cluster(options);
    if (!cluster.wait_ready()) {
        give_up("the nodes did not come up");
    }
    const std::size_t leader = cluster.leader().value();
    Http at_leader(cluster.node(leader).url());
    Http at_other(cluster.node(1 - leader).url());
    std::vector<double> times;
    for (int i = 0; i < jobs; ++i) {
        times.push_back(milliseconds_later(at_leader, at_other));
    }
    std::sort(times.begin(), times.end());
    std::printf(
        "relay %s jobs=%d p50=%.2f ms p95=%.2f ms longest=%.2f ms\n",
        name,
        jobs,
        times[times.size() / 2],
        times[times.size() * 95 / 100],
        times.back()
    );
    std::fflush(stdout);
}

}  // namespace
}  // namespace comfyd::bench

int main(int count, char** arguments) {
    const int with_redis = count > 1 ? std::atoi(arguments[1]) : 200;
    const int without = count > 2 ? std::atoi(arguments[2]) : 30;
    comfyd::bench::measure("redis", true, with_redis);
    comfyd::bench::measure("without-redis", false, without);
}
