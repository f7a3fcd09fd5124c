#include "base/gpu_name.hpp"

#include <gtest/gtest.h>

namespace comfyd {
namespace {

TEST(GpuName, WhatTellsThemApart) {
    EXPECT_TRUE(is_gpu("RTX 4090", "NVIDIA GeForce RTX 4090"));
    EXPECT_TRUE(is_gpu("rtx_4090", "RTX 4090 24GB"));
    EXPECT_TRUE(is_gpu("RTX4090", "NVIDIA GeForce RTX 4090"));
    EXPECT_FALSE(is_gpu("RTX4090", "NVIDIA GeForce RTX 4090 D"));
    EXPECT_TRUE(is_gpu("A100", "NVIDIA A100-SXM4-80GB"));
    EXPECT_TRUE(is_gpu("NVIDIA H100 80GB HBM3", "H100 SXM 80GB"));
    EXPECT_FALSE(is_gpu("L40", "L40S"));
    EXPECT_FALSE(is_gpu("RTX 6000", "RTX 6000 Ada Generation"));
    EXPECT_FALSE(is_gpu("", "RTX 4080"));
    EXPECT_FALSE(is_gpu("NVIDIA", "NVIDIA GeForce RTX 4090"));
    EXPECT_FALSE(is_gpu("RTX 4090", ""));
}

TEST(GpuName, ExactIsWhatHasAllThatWasSaid) {
    EXPECT_TRUE(is_exact_gpu("A100", "NVIDIA A100-SXM4-40GB"));
    EXPECT_TRUE(is_exact_gpu("A100 80GB", "NVIDIA A100 80GB PCIe"));
    EXPECT_FALSE(is_exact_gpu("A100 80GB", "NVIDIA A100-SXM4-40GB"));
    EXPECT_FALSE(is_exact_gpu("A100 PCIe", "NVIDIA A100-SXM4-40GB"));
    EXPECT_FALSE(is_exact_gpu("A100", "NVIDIA A10"));
}

TEST(GpuName, MemoryOfWellKnownKinds) {
    EXPECT_EQ(usual_gpu_memory_gb("NVIDIA GeForce RTX 4090"), 24);
    EXPECT_EQ(usual_gpu_memory_gb("NVIDIA RTX 6000 Ada Generation"), 48);
    EXPECT_EQ(usual_gpu_memory_gb("A100"), 80);
    EXPECT_EQ(usual_gpu_memory_gb("NVIDIA A100-SXM4-40GB"), 40) << "the name says it";
    EXPECT_EQ(usual_gpu_memory_gb("Some GPU of 2031"), 0);
    EXPECT_EQ(usual_gpu_memory_gb(""), 0);
}

// As /system_stats of such cards tells it.
TEST(GpuName, ACardHasWhatItIsSoldWith) {
    constexpr std::uint64_t kL4 = 23'659'151'360;
    constexpr std::uint64_t kT4 = 15'642'329'088;
    constexpr std::uint64_t kRtx4090 = 25'250'627'584;
    EXPECT_LE(least_gpu_memory(24), kL4);
    EXPECT_LE(least_gpu_memory(16), kT4);
    EXPECT_LE(least_gpu_memory(24), kRtx4090);
    EXPECT_GT(least_gpu_memory(32), kRtx4090);
    EXPECT_EQ(least_gpu_memory(0), 0U);
}

}  // namespace
}  // namespace comfyd
