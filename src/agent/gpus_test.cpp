#include "agent/gpus.hpp"

#include <gtest/gtest.h>

namespace comfyd::agent {
namespace {

constexpr std::string_view kTwo =
    "0, GPU-11111111-aaaa, NVIDIA H200, 143771, 616\n1, GPU-2222, NVIDIA GeForce RTX 4090, 24564, "
    "24564\n";

TEST(Gpus, AsTheProgramTellsThem) {
    const auto gpus = parse_smi(kTwo);
    ASSERT_EQ(gpus.size(), 2U);
    EXPECT_EQ(gpus[0].uuid, "GPU-11111111-aaaa");
    EXPECT_EQ(gpus[0].name, "NVIDIA H200");
    EXPECT_EQ(gpus[0].memory_total, 143'771ULL << 20);
    EXPECT_EQ(gpus[0].memory_free, (143'771ULL - 616) << 20);
    EXPECT_EQ(gpus[1].memory_free, 0U);
    for (const char* nonsense :
         {"",
          "\n\n",
          "Field \"x\" is not a valid field to query.",
          "0, GPU-1, name, [N/A], 5",
          "a, b, c, d, e",
          "0, GPU-1, name, 99999999999999999999999, 1",
          "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."}) {
        EXPECT_TRUE(parse_smi(nonsense).empty()) << nonsense;
    }
}

TEST(Gpus, OnlyThoseThatComfyUiSees) {
    const auto named = [](std::string_view visible) {
        std::string names;
        for (const Gpu& gpu : only_visible(parse_smi(kTwo), visible)) {
            names += std::to_string(gpu.index);
        }
        return names;
    };
    EXPECT_EQ(named(""), "01");
    EXPECT_EQ(named("1"), "1");
    EXPECT_EQ(named(" 0 , 1"), "01");
    EXPECT_EQ(named("GPU-2222"), "1");
    EXPECT_EQ(named("GPU-111"), "0");
    EXPECT_EQ(named("7"), "");
    EXPECT_EQ(named("-1"), "");
}

TEST(Gpus, AMachineWithoutAnyHasNone) {
    GpuMeter meter("GPU-that-is-not-there");
    EXPECT_TRUE(meter.read().empty());
    EXPECT_TRUE(meter.read().empty());
}

TEST(Gpus, Shown) {
    Gpu gpu;
    gpu.uuid = "GPU-1";
    gpu.name = "H200";
    gpu.memory_total = 100;
    gpu.memory_free = 40;
    gpu.processes = {{7, 60}};
    EXPECT_EQ(
        json::serialize(to_json(gpu)),
        R"({"uuid":"GPU-1","name":"H200","memory_total_bytes":100,"memory_free_bytes":40,)"
        R"("processes":[{"pid":7,"memory_bytes":60}]})"
    );
}

}  // namespace
}  // namespace comfyd::agent
