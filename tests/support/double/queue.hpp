// Queue and history of a double. All members on its executor.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"
#include "support/double/prompt.hpp"

namespace comfyd::support {

struct HistoryEntry {
    PromptPtr prompt;
    json::object outputs{};
    bool success = false;
    json::array messages{};  // [event, data]

    json::object to_json() const;
};

class History {
public:
    void add(HistoryEntry entry);
    const HistoryEntry* find(const std::string& id) const;
    void erase(const std::string& id);
    void clear();
    // Oldest first.
    std::vector<const HistoryEntry*> all() const;

private:
    std::unordered_map<std::string, HistoryEntry> entries_;
    std::deque<std::string> order_;
};

class PromptQueue {
public:
    // False when an entry with this number and id waits already: the real server breaks down over
    // that.
    bool add(PromptPtr prompt) { return pending_.insert(std::move(prompt)).second; }
    // The first of those that may start; null when there is none. It is then the running one.
    PromptPtr take();
    void finish() { running_.reset(); }
    bool erase_pending(std::string_view id);
    void clear_pending() { pending_.clear(); }

    const PromptPtr& running() const { return running_; }
    std::size_t remaining() const { return pending_.size() + (running_ ? 1 : 0); }
    std::vector<PromptPtr> pending() const { return {pending_.begin(), pending_.end()}; }

private:
    struct Before {
        bool operator()(const PromptPtr& a, const PromptPtr& b) const {
            return a->order != b->order ? a->order < b->order : a->id < b->id;
        }
    };
    std::set<PromptPtr, Before> pending_;
    PromptPtr running_;
};

}  // namespace comfyd::support
