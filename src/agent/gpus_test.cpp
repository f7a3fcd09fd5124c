#include "agent/gpus.hpp"

#include <gtest/gtest.h>

namespace comfyd::agent {
namespace {

Gpu gpu_of(std::string uuid) {
    Gpu gpu;
    gpu.uuid = std::move(uuid);
    return gpu;
}

TEST(Gpus, OnlyThoseThatComfyUiSees) {
    const auto named = [](std::string_view visible) {
        std::string names;
        for (const Gpu& gpu : only_visible({gpu_of("GPU-1111"), gpu_of("GPU-2222")}, visible)) {
            names += gpu.uuid.back();
        }
        return names;
    };
    EXPECT_EQ(named(""), "12");
    EXPECT_EQ(named("  "), "12");
    EXPECT_EQ(named("1"), "2");
    EXPECT_EQ(named(" 0 , 1"), "12");
    EXPECT_EQ(named("GPU-2222"), "2");
    EXPECT_EQ(named("GPU-111"), "1");
    EXPECT_EQ(named("7"), "");
    EXPECT_EQ(named("-1"), "");
    EXPECT_EQ(named(",,"), "");
}

TEST(Gpus, Shown) {
    Gpu gpu = gpu_of("GPU-1");
    gpu.name = "H200";
    gpu.memory_total_bytes = 100;
    gpu.memory_free_bytes = 40;
    gpu.processes = {{7, 60}, {8, std::nullopt}};
    EXPECT_EQ(
        json::serialize(to_json(gpu)),
        R"({"uuid":"GPU-1","name":"H200","memory_total_bytes":100,"memory_free_bytes":40,)"
        R"("processes":[{"pid":7,"memory_bytes":60},{"pid":8,"memory_bytes":0}]})"
    );
}

}  // namespace
}  // namespace comfyd::agent
