// The prompts that wait and those that have ended. Both belong to the server's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "standalone/prompt.hpp"

namespace comfyd::standalone {

// In the order of ComfyUI: by number, then by id. Equal ones are all right: the older is first.
class Queue {
public:
    Queue(std::size_t prompts_max, std::uint64_t bytes_max)
        : prompts_max_(prompts_max), bytes_max_(bytes_max) {}

    // False when the queue is full. The prompt does not run before announce().
    bool add(PromptPtr prompt);
    // Its submission was answered: it may run. False when it is not there any more.
    bool announce(std::uint64_t sequence);
    // The first that may run, which is then not in the queue any more; null when there is none.
    PromptPtr take();
    // How many of this id there were.
    std::size_t erase(std::string_view id);
    std::size_t clear();

    const std::set<PromptPtr, bool (*)(const PromptPtr&, const PromptPtr&)>& pending() const {
        return pending_;
    }

private:
    static bool before(const PromptPtr& a, const PromptPtr& b);
    void forget(const Prompt& prompt);

    std::size_t prompts_max_;
    std::uint64_t bytes_max_;
    std::uint64_t bytes_ = 0;
    std::set<PromptPtr, bool (*)(const PromptPtr&, const PromptPtr&)> pending_{before};
    std::unordered_set<std::uint64_t> unannounced_;  // by sequence
};

// Oldest first; the oldest go when there are too many or they take too much. A prompt of an id that
// is there already takes its place, as the newest.
class History {
public:
    History(std::size_t entries_max, std::uint64_t bytes_max)
        : entries_max_(entries_max), bytes_max_(bytes_max) {}

    void add(HistoryEntryPtr entry);
    HistoryEntryPtr find(const std::string& id) const;  // null when it is not there
    void erase(const std::string& id);
    void clear();
    std::vector<HistoryEntryPtr> all() const;
    // `max_items` alone: the newest; `offset`: from the oldest.
    std::vector<HistoryEntryPtr> window(
        std::optional<std::int64_t> max_items, std::optional<std::int64_t> offset
    ) const;

private:
    std::size_t entries_max_;
    std::uint64_t bytes_max_;
    std::uint64_t bytes_ = 0;
    std::uint64_t next_ = 0;
    std::map<std::uint64_t, HistoryEntryPtr> entries_;  // by age
    std::unordered_map<std::string, std::uint64_t> ages_;
};

}  // namespace comfyd::standalone
