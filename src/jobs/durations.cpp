#include "jobs/durations.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace comfyd::jobs {
namespace {

// The first one is for what is shorter than a millisecond.
double lower_bound(std::size_t bucket) {
    return bucket == 0 ? 0 : std::exp2(static_cast<double>(bucket - 1) / 2);
}
double upper_bound(std::size_t bucket) {
    return std::exp2(static_cast<double>(bucket) / 2);
}

}  // namespace

void Durations::add(Millis duration) {
    std::size_t bucket = 0;
    if (duration >= Millis(1)) {
        const double position = 2 * std::log2(static_cast<double>(duration.count()));
        bucket = std::min(kBuckets - 1, 1 + static_cast<std::size_t>(position));
    }
    ++counts_[bucket];
}

void Durations::add(const Durations& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) {
        counts_[i] += other.counts_[i];
    }
}

std::uint64_t Durations::count() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts_) {
        sum += count;
    }
    return sum;
}

std::optional<Millis> Durations::percentile(double part) const {
    const auto total = static_cast<double>(count());
    if (total == 0) {
        return std::nullopt;
    }
    const double wanted = std::clamp(part, 0.0, 1.0) * total;
    double below = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
        const auto here = static_cast<double>(counts_[i]);
        if (here == 0) {
            continue;
        }
        last = i;
        if (below + here >= wanted) {
            const double inside = (wanted - below) / here;
            const double from = lower_bound(i);
            return Millis(std::llround(from + inside * (upper_bound(i) - from)));
        }
        below += here;
    }
    return Millis(std::llround(upper_bound(last)));
}

std::string Durations::encode() const {
    const auto is_used = [](std::uint64_t count) { return count > 0; };
    const auto first = std::find_if(counts_.begin(), counts_.end(), is_used);
    if (first == counts_.end()) {
        return {};
    }
    const auto end = std::find_if(counts_.rbegin(), counts_.rend(), is_used).base();
    std::string text = std::to_string(first - counts_.begin());
    for (auto at = first; at != end; ++at) {
        text += (at == first ? ':' : ',') + std::to_string(*at);
    }
    return text;
}

std::optional<Durations> Durations::decode(std::string_view text) {
    Durations read;
    if (text.empty()) {
        return read;
    }
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto take = [&at, end](auto& number) {
        const auto [next, error] = std::from_chars(at, end, number);
        at = next;
        return error == std::errc();
    };
    std::size_t bucket = 0;
    if (!take(bucket) || at == end || *at != ':') {
        return std::nullopt;
    }
    while (at != end) {
        ++at;  // the mark before the number
        if (bucket >= kBuckets || !take(read.counts_[bucket]) || (at != end && *at != ',')) {
            return std::nullopt;
        }
        ++bucket;
    }
    return read;
}

}  // namespace comfyd::jobs
