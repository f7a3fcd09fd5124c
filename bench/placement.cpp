#include "placement.hpp"

#include <cstdio>
#include <random>
#include <set>
#include <thread>

#include "support/comfyd.hpp"
#include "tools.hpp"

namespace comfyd::bench {
namespace {

using namespace support;

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

std::vector<std::size_t> zipf_models(const ManyModels& setup) {
    std::vector<double> weights;
    for (int i = 0; i < setup.models; ++i) {
        weights.push_back(1.0 / (i + 1));
    }
    std::mt19937 random(1);
    std::discrete_distribution<std::size_t> pick(weights.begin(), weights.end());
    std::vector<std::size_t> models;
    for (int i = 0; i < setup.jobs; ++i) {
        models.push_back(pick(random));
    }
    return models;
}

json::object picture_with(std::size_t model, const std::string& text) {
    json::object graph = text_to_image(text);
    graph.at("4").as_object().at("inputs").as_object()["ckpt_name"] =
        "model-" + std::to_string(model) + ".safetensors";
    return graph;
}

void print_placement(
    const ManyModels& setup, double makespan_s, const std::vector<double>& waits_s
) {
    const std::vector<std::size_t> models = zipf_models(setup);
    const std::set<std::size_t> used(models.begin(), models.end());
    const double bound_s =
        (setup.jobs * setup.run_ms + static_cast<double>(used.size()) * setup.load_ms) /
        static_cast<double>(setup.workers.size()) / 1000;
    std::printf(
        "jobs=%d makespan_s=%.2f bound_s=%.2f ratio=%.3f p95_wait_s=%.2f loads=%lld\n",
        setup.jobs,
        makespan_s,
        bound_s,
        makespan_s / bound_s,
        percentile(waits_s, 0.95),
        static_cast<long long>(loads_of(setup.workers))
    );
}

int place_many_models(const std::string& url, const ManyModels& setup) {
    Http http(url);
    BareClient client(url);
    const std::vector<std::size_t> models = zipf_models(setup);
    const auto start = SteadyClock::now();
    for (std::size_t i = 0; i < models.size(); ++i) {
        json::object graph = picture_with(models[i], "placement " + std::to_string(i));
        client.post("/api/v2/jobs", json::serialize(json::object{{"workflow", std::move(graph)}}));
    }
    while (http.get("/api/v1/queue/metrics").json_at("/completed_tasks").to_number<int>() <
           setup.jobs) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    print_placement(setup, ms_since(start) / 1000, waits_s(http));
    return 0;
}

}  // namespace comfyd::bench
