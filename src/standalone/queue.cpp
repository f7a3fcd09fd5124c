#include "standalone/queue.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace comfyd::standalone {

bool Queue::before(const PromptPtr& a, const PromptPtr& b) {
    if (a->order != b->order) {
        return a->order < b->order;
    }
    return a->id != b->id ? a->id < b->id : a->sequence < b->sequence;
}

bool Queue::add(PromptPtr prompt) {
    if (pending_.size() >= prompts_max_ || bytes_ + prompt->bytes > bytes_max_) {
        return false;
    }
    bytes_ += prompt->bytes;
    unannounced_.insert(prompt->sequence);
    pending_.insert(std::move(prompt));
    return true;
}

bool Queue::announce(std::uint64_t sequence) {
    return unannounced_.erase(sequence) > 0;
}

void Queue::forget(const Prompt& prompt) {
    bytes_ -= prompt.bytes;
    unannounced_.erase(prompt.sequence);
}

PromptPtr Queue::take() {
    const auto first = std::ranges::find_if(pending_, [this](const PromptPtr& prompt) {
        return !unannounced_.contains(prompt->sequence);
    });
    if (first == pending_.end()) {
        return nullptr;
    }
    PromptPtr prompt = *first;
    pending_.erase(first);
    forget(*prompt);
    return prompt;
}

std::size_t Queue::erase(std::string_view id) {
    return std::erase_if(pending_, [this, id](const PromptPtr& prompt) {
        const bool wanted = prompt->id == id;
        if (wanted) {
            forget(*prompt);
        }
        return wanted;
    });
}

std::size_t Queue::clear() {
    const std::size_t count = pending_.size();
    pending_.clear();
    unannounced_.clear();
    bytes_ = 0;
    return count;
}

void History::add(HistoryEntryPtr entry) {
    erase(entry->prompt->id);
    bytes_ += entry->bytes;
    ages_[entry->prompt->id] = next_;
    entries_.emplace(next_++, std::move(entry));
    while (entries_.size() > entries_max_ || (bytes_ > bytes_max_ && entries_.size() > 1)) {
        erase(std::string(entries_.begin()->second->prompt->id));
    }
}

HistoryEntryPtr History::find(const std::string& id) const {
    const auto age = ages_.find(id);
    return age == ages_.end() ? nullptr : entries_.at(age->second);
}

void History::erase(const std::string& id) {
    const auto age = ages_.find(id);
    if (age == ages_.end()) {
        return;
    }
    const auto entry = entries_.find(age->second);
    bytes_ -= entry->second->bytes;
    entries_.erase(entry);
    ages_.erase(age);
}

void History::clear() {
    entries_.clear();
    ages_.clear();
    bytes_ = 0;
}

std::vector<HistoryEntryPtr> History::all() const {
    return window(std::nullopt, std::nullopt);
}

std::vector<HistoryEntryPtr> History::window(
    std::optional<std::int64_t> max_items, std::optional<std::int64_t> offset
) const {
    const auto total = static_cast<std::int64_t>(entries_.size());
    const std::int64_t wanted = std::clamp<std::int64_t>(max_items.value_or(total), 0, total);
    const bool from_oldest = (offset && *offset >= 0) || !max_items;
    const std::int64_t first =
        from_oldest ? std::clamp<std::int64_t>(offset.value_or(0), 0, total) : total - wanted;
    std::vector<HistoryEntryPtr> found;
    auto at = std::next(entries_.begin(), first);
    for (; at != entries_.end() && static_cast<std::int64_t>(found.size()) < wanted; ++at) {
        found.push_back(at->second);
    }
    return found;
}

}  // namespace comfyd::standalone
