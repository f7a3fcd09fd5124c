// How often durations of which length occurred: a fixed histogram from which percentiles are read.
// A bucket's end is 1.41 times its beginning, from a millisecond to 24 days, so a percentile is off
// by a fifth at most. Plain values; sums of two are exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::jobs {

class Durations {
public:
    void add(Millis duration);
    void add(const Durations& other);

    std::uint64_t count() const;
    // `part` in 0..1: the duration that this part of them does not exceed. nullopt: there are none.
    std::optional<Millis> percentile(double part) const;

    // "17:2,0,1": the first bucket that is not empty and the counts from there to the last one;
    // nothing for none.
    std::string encode() const;
    // nullopt: encode() did not write this.
    static std::optional<Durations> decode(std::string_view text);

    bool operator==(const Durations&) const = default;

private:
    static constexpr std::size_t kBuckets = 64;
    std::array<std::uint64_t, kBuckets> counts_{};
};

}  // namespace comfyd::jobs
