#include "app/model_news.hpp"

#include <utility>

namespace comfyd::app {

void ModelNews::told(const std::string& worker, const json::object& answer) {
    models::WorkerFiles files = models::read_worker_files(answer);
    for (const auto& [path, facts] : files) {
        book_.learn(facts);
    }
    files_.set(worker, std::move(files));
}

void ModelNews::left(const std::string& worker) {
    files_.forget(worker);
    const Lock lock(mutex_);
    told_.erase(worker);
}

void ModelNews::fetched(const std::string& worker, fleet::FetchedBytes bytes) {
    const bool is_older = std::chrono::steady_clock::now() - bytes.uptime < started_;
    const Lock lock(mutex_);
    const auto [known, is_new] = told_.try_emplace(worker);
    fleet::FetchedBytes& before = known->second;
    if (is_new && is_older) {
        before = bytes;
    }
    // Less than before: its agent was started anew.
    const auto grown = [](std::uint64_t now, std::uint64_t then) {
        return now < then ? now : now - then;
    };
    sum_.outside += grown(bytes.outside, before.outside);
    sum_.peers += grown(bytes.peers, before.peers);
    before = bytes;
}

fleet::FetchedBytes ModelNews::fetched() const {
    const Lock lock(mutex_);
    return sum_;
}

void ModelNews::collect(observe::Metrics::Gauges& gauges) const {
    const fleet::FetchedBytes sum = fetched();
    for (const auto& [source, bytes] :
         {std::pair("outside", sum.outside), std::pair("peer", sum.peers)}) {
        gauges.set(
            "comfyd_model_bytes_fetched",
            "Bytes of models that agents have fetched since start: from outside, or from each "
            "other.",
            {{"source", source}},
            static_cast<double>(bytes)
        );
    }
}

}  // namespace comfyd::app
