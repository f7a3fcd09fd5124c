#include "engine/pixels/random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "engine/nodes/kernel.hpp"

namespace comfyd::engine {
namespace {

// PyTorch turns sixteen uniform numbers at a time into normal ones, eight as radius and eight as
// angle.
constexpr std::size_t kGroup = 16;
constexpr std::size_t kHalf = kGroup / 2;
constexpr std::size_t kStopCheck = kGroup * 65'536;  // numbers

// The single-precision logarithm of the Cephes library for 0 < x <= 1, which PyTorch uses here.
inline float cephes_log(float x) {
    x = x < 0x1p-126F ? 0x1p-126F : x;
    const auto bits = std::bit_cast<std::uint32_t>(x);
    auto exponent = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 0x7F) + 1.0F;
    float m = std::bit_cast<float>((bits & 0x807F'FFFFU) | 0x3F00'0000U);
    const bool small = m < 0.707106781186547524F;
    exponent -= small ? 1.0F : 0.0F;
    m = (m - 1.0F) + (small ? m : 0.0F);
    const float z = m * m;
    float y = 7.0376836292E-2F;
    y = std::fma(y, m, -1.1514610310E-1F);
    y = std::fma(y, m, 1.1676998740E-1F);
    y = std::fma(y, m, -1.2420140846E-1F);
    y = std::fma(y, m, 1.4249322787E-1F);
    y = std::fma(y, m, -1.6668057665E-1F);
    y = std::fma(y, m, 2.0000714765E-1F);
    y = std::fma(y, m, -2.4999993993E-1F);
    y = std::fma(y, m, 3.3333331174E-1F);
    y = y * m * z;
    y = std::fma(exponent, -2.12194440E-4F, y);
    y = std::fma(-z, 0.5F, y);
    m = m + y;
    return std::fma(exponent, 0.693359375F, m);
}

struct SinCos {
    float sin;
    float cos;
};

// Likewise its sine and cosine, for 0 <= x <= 2 pi.
inline SinCos cephes_sincos(float x) {
    const auto octant = (static_cast<std::int32_t>(x * 1.27323954473516F) + 1) & ~std::int32_t{1};
    const auto y = static_cast<float>(octant);
    const bool swap = (octant & 2) != 0;
    const bool sin_negative = (octant & 4) != 0;
    const bool cos_negative = ((octant - 2) & 4) == 0;
    x = std::fma(y, -0.78515625F, x);
    x = std::fma(y, -2.4187564849853515625e-4F, x);
    x = std::fma(y, -3.77489497744594108e-8F, x);
    const float z = x * x;
    float c = 2.443315711809948E-005F;
    c = std::fma(c, z, -1.388731625493765E-003F);
    c = std::fma(c, z, 4.166664568298827E-002F);
    c = c * z * z;
    c = std::fma(-z, 0.5F, c) + 1.0F;
    float s = -1.9515295891E-4F;
    s = std::fma(s, z, 8.3321608736E-3F);
    s = std::fma(s, z, -1.6666654611E-1F);
    s = std::fma(s * z, x, x);
    const float sin = swap ? c : s;
    const float cos = swap ? s : c;
    return {sin_negative ? -sin : sin, cos_negative ? -cos : cos};
}

COMFYD_KERNEL void to_normal(float* groups, std::size_t count) {
    COMFYD_NO_CONTRACTION
    constexpr float kTwoPi = 2.0F * std::numbers::pi_v<float>;
    for (std::size_t g = 0; g < count; ++g, groups += kGroup) {
        std::array<float, kHalf> first;
        std::array<float, kHalf> second;
        std::copy_n(groups, kHalf, first.begin());
        std::copy_n(groups + kHalf, kHalf, second.begin());
#pragma clang loop vectorize(enable)
        for (std::size_t j = 0; j < kHalf; ++j) {
            const float radius = kernel_sqrt(-2.0F * cephes_log(1.0F - first[j]));
            const SinCos angle = cephes_sincos(kTwoPi * second[j]);
            first[j] = radius * angle.cos;
            second[j] = radius * angle.sin;
        }
        std::ranges::copy(first, groups);
        std::ranges::copy(second, groups + kHalf);
    }
}

}  // namespace

std::uint32_t numpy_seed(const Value& seed) {
    constexpr std::int64_t kModulus = 0xFFFF'FFFF;
    if (const auto* large = std::get_if<std::uint64_t>(&seed)) {
        return static_cast<std::uint32_t>(*large % kModulus);
    }
    const std::int64_t rest = std::get<std::int64_t>(seed) % kModulus;
    return static_cast<std::uint32_t>(rest < 0 ? rest + kModulus : rest);
}

std::uint64_t NumpyRandom::below(std::uint64_t count) {
    if (count <= 1) {
        return 0;
    }
    const auto mask = static_cast<std::uint32_t>(std::bit_ceil(count) - 1);
    std::uint32_t value = engine_() & mask;
    while (value >= count) {
        value = engine_() & mask;
    }
    return value;
}

void TorchNormal::fill(float* out, std::size_t count, const std::function<bool()>& stopped) {
    if (count < kGroup) {
        fill_few(out, count);
        return;
    }
    const std::size_t whole = count / kGroup * kGroup;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % kStopCheck == 0 && stopped()) {
            return;
        }
        out[i] = uniform();
    }
    for (std::size_t i = 0; i < whole && !stopped(); i += kStopCheck) {
        to_normal(out + i, std::min(kStopCheck, whole - i) / kGroup);
    }
    if (count % kGroup != 0) {
        float* last = out + count - kGroup;
        for (std::size_t i = 0; i < kGroup; ++i) {
            last[i] = uniform();
        }
        to_normal(last, 1);
    }
}

double TorchNormal::uniform_double() {
    const std::uint64_t high = engine_();
    const std::uint64_t low = engine_();
    return static_cast<double>((high << 32 | low) & ((1ULL << 53) - 1)) * 0x1p-53;
}

void TorchNormal::fill_few(float* out, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 2) {
        const double angle = 2.0 * std::numbers::pi * uniform_double();
        const double radius = std::sqrt(-2.0 * std::log1p(-uniform_double()));
        out[i] = static_cast<float>(radius * std::cos(angle));
        if (i + 1 < count) {
            out[i + 1] = static_cast<float>(radius * std::sin(angle));
        }
    }
}

}  // namespace comfyd::engine
