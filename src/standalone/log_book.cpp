#include "standalone/log_book.hpp"

#include <utility>

namespace comfyd::standalone {

json::object LogBook::encode(const Line& line) {
    json::object entry;
    entry["t"] = line.time;
    entry["m"] = line.text;
    return entry;
}

json::object LogBook::with_size(json::array entries) {
    json::object log;
    log["entries"] = std::move(entries);
    log["size"] = {{"cols", 80}, {"rows", 24}};
    return log;
}

void LogBook::add(std::string line) {
    lines_.push_back({to_rfc3339(clock_.now()), std::move(line) + "\n"});
    if (lines_.size() > kLinesMax) {
        lines_.pop_front();
    }
    if (subscribers_.empty()) {
        return;
    }
    json::array entries;
    entries.push_back(encode(lines_.back()));
    json::object message;
    message["type"] = "logs";
    message["data"] = with_size(std::move(entries));
    const std::string encoded = json::serialize_python(message);
    for (const std::string& client : subscribers_) {
        hub_.send(client, encoded);
    }
}

void LogBook::subscribe(const std::string& client_id, bool wanted) {
    if (!wanted) {
        subscribers_.erase(client_id);
        return;
    }
    // Those who have left make room.
    if (subscribers_.size() >= kSubscribersMax) {
        std::erase_if(subscribers_, [this](const std::string& id) { return !hub_.listens(id); });
    }
    if (!client_id.empty() && subscribers_.size() < kSubscribersMax) {
        subscribers_.insert(client_id);
    }
}

std::string LogBook::text() const {
    std::string all;
    for (const Line& line : lines_) {
        all += line.time + " - " + line.text;
    }
    return all;
}

json::object LogBook::to_json() const {
    json::array entries;
    for (const Line& line : lines_) {
        entries.push_back(encode(line));
    }
    return with_size(std::move(entries));
}

}  // namespace comfyd::standalone
