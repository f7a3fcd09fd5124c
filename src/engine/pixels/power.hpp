// x to a fixed power, right to the last bit of a float or next to it, in code that the compiler
// can turn into vector instructions.
#pragma once

#include <bit>
#include <cstdint>

namespace comfyd::engine {

// For 0 < x < infinity; 0 for 0, and NaN for anything else.
inline float power(float x, double exponent) {
    // x = m * 2^e with m around 1, by the bits of the double.
    const auto bits = std::bit_cast<std::int64_t>(static_cast<double>(x));
    const std::int64_t shifted = bits - 0x3FE6'A09E'667F'3BCDLL;  // of the square root of 1/2
    const std::int64_t e = shifted >> 52;
    const double m = std::bit_cast<double>(bits - (e << 52));
    const double t = (m - 1.0) / (m + 1.0);
    const double s = t * t;
    double series = 1.0 / 15;
    series = series * s + 1.0 / 13;
    series = series * s + 1.0 / 11;
    series = series * s + 1.0 / 9;
    series = series * s + 1.0 / 7;
    series = series * s + 1.0 / 5;
    series = series * s + 1.0 / 3;
    series = series * s + 1.0;
    constexpr double kTwoOverLn2 = 2.8853900817779268;
    const double log2 =
        t * series * kTwoOverLn2 + static_cast<double>(static_cast<std::int32_t>(e));
    const double wanted = log2 * exponent;
    // Adding and taking away this much rounds to a whole number.
    constexpr double kRound = 0x1.8p52;
    const double whole = (wanted + kRound) - kRound;
    const double z = (wanted - whole) * 0.69314718055994531;
    double value = 1.0 / 3628800;
    value = value * z + 1.0 / 362880;
    value = value * z + 1.0 / 40320;
    value = value * z + 1.0 / 5040;
    value = value * z + 1.0 / 720;
    value = value * z + 1.0 / 120;
    value = value * z + 1.0 / 24;
    value = value * z + 1.0 / 6;
    value = value * z + 0.5;
    value = value * z + 1.0;
    value = value * z + 1.0;
    const auto power_of_two = std::bit_cast<double>(
        (static_cast<std::int64_t>(static_cast<std::int32_t>(whole)) + 1023) << 52
    );
    const auto result = static_cast<float>(value * power_of_two);
    constexpr float kInfinity = std::bit_cast<float>(0x7F80'0000U);
    return x > 0.0F && x < kInfinity ? result : x == 0.0F ? 0.0F : kInfinity - kInfinity;
}

}  // namespace comfyd::engine
