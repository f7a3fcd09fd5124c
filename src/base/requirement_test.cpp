#include "base/requirement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace comfyd {
namespace {

using testing::ElementsAre;

std::vector<std::string> told(const Requirement& requirement) {
    std::vector<std::string> needs;
    requirement.each([&](std::string_view type, std::string_view input, std::string_view value) {
        needs.push_back(std::string(type) + "|" + std::string(input) + "|" + std::string(value));
        return true;
    });
    return needs;
}

TEST(Requirement, TellsClassesAndChoicesInOrderAndOnce) {
    EXPECT_THAT(told(Requirement()), ElementsAre());
    const Requirement made = Requirement::of(
        {{"Save"}, {"Load", "ckpt", "a b.safetensors"}, {"Load"}, {"Save"}, {"Load", "ckpt", ""}}
    );
    EXPECT_THAT(
        told(made), ElementsAre("Load||", "Load|ckpt|", "Load|ckpt|a b.safetensors", "Save||")
    );
    EXPECT_EQ(made.encoded(), "Load\nLoad\tckpt\t\nLoad\tckpt\ta b.safetensors\nSave");
    EXPECT_EQ(Requirement::decode(made.encoded()), made);
}

TEST(Requirement, APoolComesAndGoesWithoutTheNeeds) {
    for (const Requirement& plain :
         {Requirement(), Requirement::of({{"A"}}), Requirement::of({{"A"}, {"B", "x", "y"}})}) {
        EXPECT_EQ(plain.pool(), "");
        EXPECT_TRUE(plain.allows_pool("gold"));
        const Requirement gold = plain.in_pool("gold");
        EXPECT_EQ(gold.pool(), "gold");
        EXPECT_EQ(told(gold), told(plain));
        EXPECT_TRUE(gold.allows_pool("gold"));
        EXPECT_FALSE(gold.allows_pool("default"));
        EXPECT_EQ(gold.in_pool("silver").pool(), "silver");
        EXPECT_EQ(gold.in_pool(""), plain);
        EXPECT_EQ(Requirement::decode(gold.encoded()), gold);
        EXPECT_NE(gold, plain);
    }
}

TEST(Requirement, AMachineComesAndGoesWithoutTheNeeds) {
    const MachineWish all{
        .pool = "gold", .gpu = "RTX 4090", .region = "EU", .memory_gb = 24, .memory_part = 0.5
    };
    const MachineWish some{.memory_gb = 7.5};
    for (const Requirement& plain :
         {Requirement(), Requirement::of({{"A"}}), Requirement::of({{"A"}, {"B", "x", "y"}})}) {
        EXPECT_FALSE(plain.is_particular());
        EXPECT_EQ(plain.machine(), MachineWish());
        EXPECT_EQ(plain.machine_text(), "");
        for (const MachineWish& wish : {all, some}) {
            const Requirement made = plain.on(wish);
            EXPECT_EQ(made.machine(), wish);
            EXPECT_EQ(Requirement::decode(made.encoded()), made);
            EXPECT_EQ(told(made), told(plain));
            EXPECT_TRUE(made.is_particular());
            EXPECT_EQ(made.machine_text(), Requirement().on(wish).encoded());
            EXPECT_EQ(made.on({}), plain);
            EXPECT_EQ(made.in_pool("silver").machine().memory_gb, wish.memory_gb);
        }
        EXPECT_EQ(plain.on(all).musts().machine().memory_part, 0);
        EXPECT_EQ(plain.on(all).musts().machine().gpu, "RTX 4090");
        EXPECT_FALSE(plain.on({.pool = "gold", .memory_part = 0.5}).is_particular());
    }
}

TEST(Requirement, NumbersAreRoundedUp) {
    const auto made = [](double memory, double part) {
        return Requirement().on({.memory_gb = memory, .memory_part = part}).machine();
    };
    EXPECT_EQ(made(7.1, 0.801).memory_gb, 7.5);
    EXPECT_EQ(made(7.1, 0.801).memory_part, 0.81);
    EXPECT_EQ(made(0.001, 0.001).memory_gb, 0.5);
    EXPECT_EQ(made(1e300, 7).memory_gb, MachineWish::kMemoryMax);
    EXPECT_EQ(made(1e300, 7).memory_part, 1);
    EXPECT_EQ(made(-1, -1), MachineWish());
    EXPECT_EQ(made(std::nan(""), std::nan("")), MachineWish());
    EXPECT_EQ(made(24, 0.8).memory_part, 0.8);
}

TEST(Requirement, SaysWhatAMachineLacks) {
    constexpr std::uint64_t kGiB = 1024ULL * 1024 * 1024;
    const MachineFacts card{"gold", "NVIDIA GeForce RTX 4090", "eu", 24 * kGiB};
    const auto missing = [&card](const MachineWish& wish) {
        return Requirement::of({{"A"}}).on(wish).missing_of(card);
    };
    EXPECT_THAT(
        missing({.gpu = "rtx 4090", .region = "EU", .memory_gb = 24, .memory_part = 1}),
        ElementsAre()
    );
    EXPECT_THAT(
        missing({.gpu = "L40S", .region = "us", .memory_gb = 48}),
        ElementsAre(
            "the GPU 'L40S' (it has 'NVIDIA GeForce RTX 4090')",
            "48 GB of GPU memory (it has 24 GB)",
            "the region 'us' (it is in 'eu')"
        )
    );
    const Requirement wants = Requirement().on({.pool = "gold", .memory_gb = 1});
    EXPECT_TRUE(wants.allows(card));
    EXPECT_FALSE(wants.allows({"silver", card.gpu, card.region, card.gpu_memory_bytes}));
    EXPECT_FALSE(wants.allows({"gold", "", "", 0})) << "of which nothing is known";
    EXPECT_FALSE(wants.allows({"gold", "cpu", "", 512 * kGiB})) << "which is no GPU's memory";
    EXPECT_TRUE(Requirement().allows({}));
}

// What is stored may be damaged, or be of another version.
TEST(Requirement, OddTextsAreRead) {
    for (const char* odd :
         {"\t", "\tgpu\t", "\tmemory\tlots", "\tpool", "\t\n\t\n", "\tnew\tx\nA"}) {
        const Requirement read = Requirement::decode(odd);
        EXPECT_EQ(read.machine(), MachineWish()) << odd;
        EXPECT_LE(told(read).size(), 1U) << odd;
    }
    EXPECT_THAT(told(Requirement::decode("\tnew\tx\nA")), ElementsAre("A||"));
}

TEST(Requirement, ALookEndsWhereItIsNotWanted) {
    int seen = 0;
    const Requirement made = Requirement::of({{"A"}, {"B"}, {"C"}});
    EXPECT_FALSE(made.each([&](std::string_view type, std::string_view, std::string_view) {
        seen += 1;
        return type != "B";
    }));
    EXPECT_EQ(seen, 2);
}

TEST(Requirement, NamesThatWouldBeTwoAreNone) {
    EXPECT_TRUE(Requirement::can_name("Load Image (from disk)"));
    for (const char* odd : {"", "a\nb", "a\tb", "\t", "\n"}) {
        EXPECT_FALSE(Requirement::can_name(odd));
    }
}

}  // namespace
}  // namespace comfyd
