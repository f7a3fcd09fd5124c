#include "engine/pixels/torch_math.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

// PyTorch adds in vectors of this many values.
constexpr std::size_t kLanes = 8;
using Lanes = std::array<float, kLanes>;

void add(Lanes& sum, const float* values) {
    for (std::size_t i = 0; i < kLanes; ++i) {
        sum[i] += values[i];
    }
}

// Fewer values than a vector holds are added in four chains.
float small_sum(const float* values, std::size_t count) {
    std::array<float, 4> chains{};
    const std::size_t whole = count / chains.size() * chains.size();
    for (std::size_t i = 0; i < whole; ++i) {
        chains[i % chains.size()] += values[i];
    }
    for (std::size_t i = whole; i < count; ++i) {
        chains[0] += values[i];
    }
    return ((chains[0] + chains[1]) + chains[2]) + chains[3];
}

}  // namespace

float torch_sum(const float* values, std::size_t count) {
    COMFYD_NO_CONTRACTION
    constexpr std::size_t kChains = 4;
    if (count < kLanes) {
        return small_sum(values, count);
    }
    constexpr std::size_t kLevels = 4;
    const std::size_t vectors = count / kLanes;
    const std::size_t steps = vectors / kChains;
    // Sums of sums: a level is handed on after this many additions.
    const std::size_t power = std::max<std::size_t>(
        4,
        static_cast<std::size_t>(std::bit_width(steps > 1 ? steps - 1 : std::size_t{0})) / kLevels
    );
    const std::size_t level_steps = std::size_t{1} << power;
    std::array<std::array<Lanes, kChains>, kLevels> sums{};
    const auto add_step = [&](std::size_t step) {
        for (std::size_t k = 0; k < kChains; ++k) {
            add(sums[0][k], values + (step * kChains + k) * kLanes);
        }
    };
    std::size_t i = 0;
    while (i + level_steps <= steps) {
        for (std::size_t j = 0; j < level_steps; ++j, ++i) {
            add_step(i);
        }
        for (std::size_t level = 1; level < kLevels; ++level) {
            for (std::size_t k = 0; k < kChains; ++k) {
                add(sums[level][k], sums[level - 1][k].data());
                sums[level - 1][k] = {};
            }
            if ((i & ((level_steps - 1) << (level * power))) != 0) {
                break;
            }
        }
    }
    for (; i < steps; ++i) {
        add_step(i);
    }
    for (std::size_t level = 1; level < kLevels; ++level) {
        for (std::size_t k = 0; k < kChains; ++k) {
            add(sums[0][k], sums[level][k].data());
        }
    }
    Lanes& total = sums[0][0];
    for (std::size_t v = steps * kChains; v < vectors; ++v) {
        add(total, values + v * kLanes);
    }
    for (std::size_t k = 1; k < kChains; ++k) {
        add(total, sums[0][k].data());
    }
    float sum = 0;
    for (std::size_t rest = vectors * kLanes; rest < count; ++rest) {
        sum += values[rest];
    }
    for (const float lane : total) {
        sum += lane;
    }
    return sum;
}

float torch_exp(float x) {
    const float q = std::nearbyint(x * 1.442695040888963407F);
    float s = std::fma(q, -0.693145751953125F, x);
    s = std::fma(q, -1.428606765330187045e-06F, s);
    float u = 0.000198527617612853646278381F;
    u = std::fma(u, s, 0.00139304355252534151077271F);
    u = std::fma(u, s, 0.00833336077630519866943359F);
    u = std::fma(u, s, 0.0416664853692054748535156F);
    u = std::fma(u, s, 0.166666671633720397949219F);
    u = std::fma(u, s, 0.5F);
    u = 1.0F + std::fma(s * s, u, s);
    constexpr float kFar = 104.0F;             // beyond it the result is 0 or infinite
    const bool is_near = std::abs(x) <= kFar;  // and a number
    const float far = x < -kFar ? 0.0F : x + std::numeric_limits<float>::infinity();
    return is_near ? std::ldexp(u, static_cast<int>(is_near ? q : 0.0F)) : far;
}

float torch_sin(float x) {
    COMFYD_NO_CONTRACTION
    const float half_turns = std::nearbyint(x * 0.318309886183790671537767526745028724F);
    float d = std::fma(half_turns, -3.1414794921875F, x);
    d = std::fma(half_turns, -0.00011315941810607910156F, d);
    d = std::fma(half_turns, -1.9841872589410058936e-09F, d);
    const float s = d * d;
    constexpr float kAllEven = 16'777'216.0F;  // floats from here on
    const bool is_odd = std::abs(half_turns) < kAllEven && (static_cast<int>(half_turns) & 1) != 0;
    d = is_odd ? -d : d;
    float u = 2.6083159809786593541503e-06F;
    u = std::fma(u, s, -0.0001981069071916863322258F);
    u = std::fma(u, s, 0.00833307858556509017944336F);
    u = std::fma(u, s, -0.166666597127914428710938F);
    return s * (u * d) + d;
}

}  // namespace comfyd::engine
