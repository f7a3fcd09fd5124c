// What workers tell of their model files: kept for each as long as it is there, and what a content
// is for good, in the register; and how many bytes of models they have fetched. Owned by the
// application. Any thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/json.hpp"
#include "base/mutex.hpp"
#include "fleet/options.hpp"
#include "models/known_files.hpp"
#include "models/register_book.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

class ModelNews {
public:
    // `book` outlives it.
    explicit ModelNews(models::RegisterBook& book) : book_(book) {}

    // The answer of its agent to GET /worker/v1/files.
    void told(const std::string& worker, const json::object& answer);
    // What it has fetched by now. Bytes that it had when this process started are not counted.
    void fetched(const std::string& worker, fleet::FetchedBytes bytes);
    void left(const std::string& worker);
    // By all workers since this process started.
    fleet::FetchedBytes fetched() const;

    const models::KnownFiles& files() const { return files_; }
    // comfyd_model_bytes_fetched{source}
    void collect(observe::Metrics::Gauges& gauges) const;

private:
    models::RegisterBook& book_;
    models::KnownFiles files_;
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    mutable Mutex mutex_;
    std::map<std::string, fleet::FetchedBytes> told_ COMFYD_GUARDED_BY(mutex_);  // by worker
    fleet::FetchedBytes sum_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::app
