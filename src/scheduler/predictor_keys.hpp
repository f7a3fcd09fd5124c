// How the predictor finds what it has learned. Pure; internal to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/requirement.hpp"

namespace comfyd::scheduler {

// The same in every process: what is made of it is stored.
inline std::uint64_t stable_hash(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    }
    return hash;
}

inline std::vector<std::uint64_t> hashed_classes(const Requirement& requirement) {
    std::vector<std::uint64_t> classes;
    requirement.each([&](std::string_view class_type, std::string_view, std::string_view) {
        classes.push_back(stable_hash(class_type));
        return true;
    });
    std::ranges::sort(classes);
    const auto twice = std::ranges::unique(classes);
    classes.erase(twice.begin(), twice.end());
    return classes;
}

inline std::string class_set_key(const std::vector<std::uint64_t>& classes) {
    std::uint64_t key = classes.size();
    for (const std::uint64_t one : classes) {
        key = (key ^ one) * 0x9E3779B97F4A7C15ULL;
    }
    return std::to_string(key);
}

// Types of GPU stand beside workers in the same table; no worker's id begins with a tab.
inline std::string type_key(std::string_view gpu_type) {
    return "\t" + std::string(gpu_type);
}
inline std::string load_key(std::string_view where, std::string_view model) {
    std::string key;
    key.reserve(where.size() + 1 + model.size());
    key.append(where).append(1, '\t').append(model);
    return key;
}

// In a short list of pairs; nullptr when absent.
template <class Value>
const Value* find_entry(
    const std::vector<std::pair<std::string, Value>>& list, std::string_view key
) {
    for (const auto& [name, value] : list) {
        if (name == key) {
            return &value;
        }
    }
    return nullptr;
}
// Made when absent; the oldest entry goes when there are `size_max`.
template <class Value>
Value& use_entry(
    std::vector<std::pair<std::string, Value>>& list, std::string_view key, std::size_t size_max
) {
    for (auto& [name, value] : list) {
        if (name == key) {
            return value;
        }
    }
    if (list.size() >= size_max) {
        list.erase(list.begin());
    }
    return list.emplace_back(std::string(key), Value()).second;
}

}  // namespace comfyd::scheduler
