#include "base/requirement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
