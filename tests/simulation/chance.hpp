// All that is left to chance in a schedule: the same seed gives the same numbers on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace comfyd::simulation {

class Chance {
public:
    explicit Chance(std::uint64_t seed) : state_(seed) {}

    // SplitMix64.
    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
        return mixed ^ (mixed >> 31);
    }
    int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
    bool one_in(int count) { return below(count) == 0; }
    Millis millis(int at_least, int below_this) {
        return Millis(at_least + below(below_this - at_least));
    }
    template <class List>
    auto& pick(List& list) {
        return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
    }

private:
    std::uint64_t state_;
};

}  // namespace comfyd::simulation
