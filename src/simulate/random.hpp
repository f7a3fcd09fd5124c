// Chance that is the same on every machine: the distributions of the standard library are not.
// xoshiro256** by Blackman and Vigna, seeded by splitmix64. A plain value.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace comfyd::simulate {

class Random {
public:
    explicit Random(std::uint64_t seed) {
        for (std::uint64_t& word : state_) {
            seed += 0x9E3779B97F4A7C15ULL;
            std::uint64_t mixed = seed;
            mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
            mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
            word = mixed ^ (mixed >> 31U);
        }
    }

    std::uint64_t bits() {
        const std::uint64_t made = std::rotl(state_[1] * 5, 7) * 9;
        const std::uint64_t shifted = state_[1] << 17U;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return made;
    }
    double uniform() { return static_cast<double>(bits() >> 11U) * 0x1p-53; }  // 0 <= x < 1
    double exponential(double mean) { return -mean * std::log1p(-uniform()); }
    double normal() {
        const double radius = std::sqrt(-2 * std::log1p(-uniform()));
        return radius * std::cos(2 * std::numbers::pi * uniform());
    }

private:
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace comfyd::simulate
