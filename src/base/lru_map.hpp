// A map of bounded size that forgets the entry that was used longest ago. Keys are texts. One
// owner, no locks.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace comfyd {

template <class Value>
class LruMap {
public:
    // REQUIRES: size_max > 0.
    explicit LruMap(std::size_t size_max) : size_max_(size_max) {}
    LruMap(const LruMap&) = delete;
    LruMap& operator=(const LruMap&) = delete;

    // nullptr when absent. Counts as no use, so that it can be asked of a const map.
    const Value* find(std::string_view key) const {
        const auto found = index_.find(key);
        return found == index_.end() ? nullptr : &found->second->second;
    }
    // The same; counts as a use.
    Value* find_used(std::string_view key) {
        const auto found = index_.find(key);
        if (found == index_.end()) {
            return nullptr;
        }
        entries_.splice(entries_.begin(), entries_, found->second);
        return &found->second->second;
    }
    // Made when absent; the oldest goes when there are too many. The reference stays valid until
    // the entry is forgotten.
    Value& use(std::string_view key) {
        if (Value* known = find_used(key)) {
            return *known;
        }
        if (entries_.size() >= size_max_) {
            index_.erase(entries_.back().first);
            entries_.pop_back();
        }
        entries_.emplace_front(std::string(key), Value());
        index_.emplace(entries_.front().first, entries_.begin());
        return entries_.front().second;
    }

    void clear() {
        index_.clear();
        entries_.clear();
    }
    std::size_t size() const { return entries_.size(); }
    // The latest used first.
    const std::list<std::pair<std::string, Value>>& entries() const { return entries_; }

private:
    std::size_t size_max_;
    std::list<std::pair<std::string, Value>> entries_;
    std::
        unordered_map<std::string_view, typename std::list<std::pair<std::string, Value>>::iterator>
            index_;  // keys are those of entries_
};

}  // namespace comfyd
