#include "support/double/queue.hpp"

#include <algorithm>
#include <utility>

namespace comfyd::support {

namespace {
constexpr std::size_t kHistoryMax = 10'000;
}  // namespace

json::object HistoryEntry::to_json() const {
    json::object meta;
    for (const auto& [node, ui] : outputs) {
        meta[node] = json::object{
            {"node_id", node},
            {"display_node", node},
            {"parent_node", nullptr},
            {"real_node_id", node}
        };
    }
    return {
        {"prompt", prompt->to_json()},
        {"outputs", outputs},
        {"status",
         json::object{
             {"status_str", success ? "success" : "error"},
             {"completed", success},
             {"messages", messages}
         }},
        {"meta", std::move(meta)},
    };
}

void History::add(HistoryEntry entry) {
    const std::string id = entry.prompt->id;
    if (entries_.insert_or_assign(id, std::move(entry)).second) {
        order_.push_back(id);
    }
    while (order_.size() > kHistoryMax) {
        entries_.erase(order_.front());
        order_.pop_front();
    }
}

const HistoryEntry* History::find(const std::string& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second;
}

void History::erase(const std::string& id) {
    if (entries_.erase(id) != 0) {
        order_.erase(std::find(order_.begin(), order_.end(), id));
    }
}

void History::clear() {
    entries_.clear();
    order_.clear();
}

std::vector<const HistoryEntry*> History::all() const {
    std::vector<const HistoryEntry*> all;
    for (const auto& id : order_) {
        all.push_back(find(id));
    }
    return all;
}

PromptPtr PromptQueue::take() {
    const auto first = std::find_if(pending_.begin(), pending_.end(), [](const auto& prompt) {
        return prompt->announced;
    });
    if (first == pending_.end()) {
        return nullptr;
    }
    running_ = *first;
    pending_.erase(first);
    return running_;
}

bool PromptQueue::erase_pending(std::string_view id) {
    return std::erase_if(pending_, [id](const auto& prompt) { return prompt->id == id; }) != 0;
}

}  // namespace comfyd::support
