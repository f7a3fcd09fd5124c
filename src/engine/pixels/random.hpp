// The random numbers of NumPy's legacy generator and of PyTorch's on the CPU, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>

#include "engine/values/value.hpp"

namespace comfyd::engine {

// Python's seed % (2**32 - 1): where a seed is linked it may be negative.
// REQUIRES: an INT.
std::uint32_t numpy_seed(const Value& seed);

// numpy.random.seed(seed) and what follows it.
class NumpyRandom {
public:
    explicit NumpyRandom(std::uint32_t seed) : engine_(seed) {}

    // numpy.random.randint(0, count). REQUIRES: 1 <= count <= 2^32.
    std::uint64_t below(std::uint64_t count);

private:
    std::mt19937 engine_;
};

// torch.manual_seed(seed); torch.randn(...) of `count` values in their order in memory.
class TorchNormal {
public:
    explicit TorchNormal(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

    // Once per generator: the values depend on how many are asked for. Asks `stopped` now and then
    // and ends early when it says so.
    void fill(float* out, std::size_t count, const std::function<bool()>& stopped);

private:
    void fill_few(float* out, std::size_t count);
    float uniform() { return static_cast<float>(engine_() & 0xFF'FFFF) * 0x1p-24F; }
    double uniform_double();

    std::mt19937 engine_;
};

}  // namespace comfyd::engine
