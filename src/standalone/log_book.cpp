#include "standalone/log_book.hpp"

#include <utility>

#include "comfy/replies.hpp"

namespace comfyd::standalone {

json::object LogBook::encode(const Line& line) {
    json::object entry;
    entry["t"] = line.time;
    entry["m"] = line.text;
    return entry;
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
    const auto frame = comfy::server::make_frame("logs", comfy::log_panel(std::move(entries)));
    for (const std::string& client : subscribers_) {
        hub_.send(client, frame);
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

json::array LogBook::lines() const {
    json::array entries;
    for (const Line& line : lines_) {
        entries.push_back(encode(line));
    }
    return entries;
}

}  // namespace comfyd::standalone
