#include "jobs/content_flights.hpp"

#include <algorithm>

namespace comfyd::jobs {

bool ContentFlights::must_wait(const std::string& region, const std::string& sha256) const {
    const auto found = contents_.find({region, sha256});
    if (found == contents_.end()) {
        return false;
    }
    const Content& content = found->second;
    if (!content.holders.empty()) {
        return content.on_the_way.size() >= kFlightsPerHolder * content.holders.size();
    }
    return std::ranges::any_of(content.on_the_way, [](const auto& flight) {
        return flight.second;
    });
}

void ContentFlights::begin(
    const std::string& region, const std::string& sha256, const std::string& worker, bool gives
) {
    contents_[{region, sha256}].on_the_way[worker] = gives;
}

void ContentFlights::end(
    const std::string& region, const std::string& sha256, const std::string& worker, bool is_there
) {
    Content& content = contents_[{region, sha256}];
    const auto flight = content.on_the_way.find(worker);
    if (flight == content.on_the_way.end()) {
        return;  // the worker was forgotten meanwhile
    }
    if (is_there && flight->second) {
        content.holders.insert(worker);
    }
    content.on_the_way.erase(flight);
}

bool ContentFlights::has(const std::string& worker, const std::string& sha256) const {
    return std::ranges::any_of(contents_, [&](const auto& entry) {
        return entry.first.second == sha256 && entry.second.holders.contains(worker);
    });
}

void ContentFlights::forget(const std::string& worker) {
    for (auto entry = contents_.begin(); entry != contents_.end();) {
        Content& content = entry->second;
        content.holders.erase(worker);
        content.on_the_way.erase(worker);
        const bool is_empty = content.holders.empty() && content.on_the_way.empty();
        entry = is_empty ? contents_.erase(entry) : std::next(entry);
    }
}

}  // namespace comfyd::jobs
