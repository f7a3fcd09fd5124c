// How long after PostgreSQL is back jobs are accepted again: a node under load, its database
// crashes, is away for a while and starts again. From its first answer to the first job that is
// accepted after it, and to the first of each client.
//
//   bench-outage [rounds] [seconds away]
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

constexpr int kClients = 8;

struct Client {
    std::atomic<Ticks::rep> latest{0};  // when one of its jobs was accepted
    std::thread thread{};
};

void submit_until(const std::string& url, Client& client, const std::atomic<bool>& is_over) {
    Http http(url);
    const json::object body{{"workflow", support::text_to_image("a picture")}};
    while (!is_over) {
        if (http.post_json("/api/v2/jobs", body).status == 201) {
            client.latest = Ticks::now().time_since_epoch().count();
        }
    }
}

struct Times {
    double first;
    double all;
};

Times seconds_until_accepts(Cluster& cluster, std::chrono::duration<double> away) {
    std::atomic<bool> is_over{false};
    std::vector<Client> clients(kClients);
    for (std::size_t i = 0; i < clients.size(); ++i) {
        const std::string url = cluster.node(i % cluster.size()).url();
        clients[i].thread = std::thread([&, i, url] { submit_until(url, clients[i], is_over); });
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
    cluster.postgres().crash();
    std::this_thread::sleep_for(away);
    cluster.postgres().start();
    const Ticks::time_point back = Ticks::now();
    const auto has_accepted = [&back](const Client& client) {
        return client.latest > back.time_since_epoch().count();
    };
    const auto wait_for = [&](const auto& is_so) {
        while (!is_so()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return std::chrono::duration<double>(Ticks::now() - back).count();
    };
    Times times{};
    times.first = wait_for([&] { return std::ranges::any_of(clients, has_accepted); });
    times.all = wait_for([&] { return std::ranges::all_of(clients, has_accepted); });
    is_over = true;
    for (Client& client : clients) {
        client.thread.join();
    }
    return times;
}

void measure(int rounds, std::chrono::duration<double> away) {
    ClusterOptions options;
    options.arguments = {"--log-level", "error"};
    Cluster cluster(options);
    if (!cluster.wait_ready()) {
        std::fprintf(stderr, "the nodes did not come up\n");
        std::exit(1);
    }
    std::vector<double> first;
    std::vector<double> all;
    for (int i = 0; i < rounds; ++i) {
        const Times times = seconds_until_accepts(cluster, away);
        first.push_back(times.first);
        all.push_back(times.all);
    }
    std::ranges::sort(first);
    std::ranges::sort(all);
    std::printf(
        "outage away=%.1f s rounds=%d first median=%.2f s longest=%.2f s every client "
        "median=%.2f s longest=%.2f s\n",
        away.count(),
        rounds,
        first[first.size() / 2],
        first.back(),
        all[all.size() / 2],
        all.back()
    );
    std::fflush(stdout);
}

}  // namespace
}  // namespace comfyd::bench

int main(int count, char** arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
    const double away = count > 2 ? std::atof(arguments[2]) : 3;
    comfyd::bench::measure(rounds, std::chrono::duration<double>(away));
}
