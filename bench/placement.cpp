#include "placement.hpp"

#include <cstdio>
#include <random>
#include <set>
#include <thread>

#define COMFYD_BINARY "comfyd"
#include "support/comfyd.hpp"
#include "tools.hpp"

namespace comfyd::bench {
namespace {

using namespace support;

std::string job_text(int number, std::size_t model) {
    json::object graph = text_to_image("placement " + std::to_string(number));
    graph.at("4").as_object().at("inputs").as_object()["ckpt_name"] =
        "model-" + std::to_string(model) + ".safetensors";
    return json::serialize(json::object{{"workflow", std::move(graph)}});
}

std::vector<double> waits_s(Http& http) {
    std::vector<double> waits;
    std::string cursor;
    do {
        const json::value page =
            http.get("/api/v2/jobs?limit=100" + (cursor.empty() ? "" : "&cursor=" + cursor)).json();
        for (const json::value& job : page.at("jobs").as_array()) {
            const auto created = parse_rfc3339(job.at("created_at").as_string());
            const auto started = parse_rfc3339(job.at("started_at").as_string());
            waits.push_back(std::chrono::duration<double>(*started - *created).count());
        }
        const json::value& next = page.at("next_cursor");
        cursor = next.is_string() ? std::string(next.get_string()) : std::string();
    } while (!cursor.empty());
    return waits;
}

std::int64_t loads_of(const std::vector<std::string>& workers) {
    std::int64_t loads = 0;
    for (const std::string& worker : workers) {
        loads += Http(worker).get("/_double/executions").json_at("/loads").to_number<int>();
    }
    return loads;
}

}  // namespace

int place_many_models(const ManyModels& setup) {
    std::vector<double> weights;
    for (int i = 0; i < setup.models; ++i) {
        weights.push_back(1.0 / (i + 1));
    }
    std::mt19937 random(1);
    std::discrete_distribution<std::size_t> pick(weights.begin(), weights.end());
    std::set<std::size_t> used;
    Http http(setup.url);
    BareClient client(setup.url);
    const auto start = SteadyClock::now();
    for (int i = 0; i < setup.jobs; ++i) {
        const std::size_t model = pick(random);
        used.insert(model);
        client.post("/api/v2/jobs", job_text(i, model));
    }
    while (http.get("/api/v1/queue/metrics").json_at("/completed_tasks").to_number<int>() <
           setup.jobs) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const double wall_s = ms_since(start) / 1000;
    const double bound_s =
        (setup.jobs * setup.run_ms + static_cast<double>(used.size()) * setup.load_ms) /
        static_cast<double>(setup.workers.size()) / 1000;
    std::printf(
        "jobs=%d makespan_s=%.2f bound_s=%.2f ratio=%.3f p95_wait_s=%.2f loads=%lld\n",
        setup.jobs,
        wall_s,
        bound_s,
        wall_s / bound_s,
        percentile(waits_s(http), 0.95),
        static_cast<long long>(loads_of(setup.workers))
    );
    return 0;
}

}  // namespace comfyd::bench
