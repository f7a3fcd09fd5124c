// How what was learned is written down and read back: lists of [key, …], and the samples of a
// RecentMedian. What is not as it should be is left out when it is read. Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <string_view>

#include "base/json.hpp"
#include "base/recent_median.hpp"

namespace comfyd {

template <std::size_t kSamplesMax>
json::array samples_json(const RecentMedian<kSamplesMax>& recent) {
    json::array samples;
    for (std::size_t at = 0; at < recent.count(); ++at) {
        samples.emplace_back(std::round(recent.sample(at) * 1e4) / 1e4);
    }
    return samples;
}

// Of logarithms: what is outside of -100..100 cannot be one.
template <std::size_t kSamplesMax>
RecentMedian<kSamplesMax> read_samples(const json::value& from) {
    RecentMedian<kSamplesMax> recent;
    if (const json::array* samples = from.if_array()) {
        for (const json::value& sample : *samples) {
            const double number = sample.is_number() ? sample.to_number<double>() : NAN;
            if (std::abs(number) < 100) {  // false for what is no number
                recent.add(number);
            }
        }
    }
    return recent;
}

// Calls visit(key, fields) for the members of a list that are lists of `size` values, the first of
// them a text: the key.
template <class Visit>
void each_learned(const json::value* list, std::size_t size, Visit visit) {
    constexpr std::size_t kKeyBytesMax = 1'024;
    const json::array* entries = list == nullptr ? nullptr : list->if_array();
    if (entries == nullptr) {
        return;
    }
    for (const json::value& entry : *entries) {
        const json::array* fields = entry.if_array();
        if (fields == nullptr || fields->size() != size || !fields->front().is_string() ||
            fields->front().get_string().size() > kKeyBytesMax) {
            continue;
        }
        const auto& key = fields->front().get_string();
        visit(std::string_view(key.data(), key.size()), *fields);
    }
}

}  // namespace comfyd
