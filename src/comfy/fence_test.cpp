#include "comfy/fence.hpp"

#include <gtest/gtest.h>

#include "comfy/members.hpp"

namespace comfyd::comfy {
namespace {

std::string type_of(const std::optional<json::object>& error) {
    return error ? text_of(*error, "type") : "";
}

TEST(Fence, RefusesLowerEpochsOfTheSameDomain) {
    Fence fence;
    EXPECT_FALSE(fence.refuse({"main", 3}, "a"));
    EXPECT_FALSE(fence.refuse({"main", 4}, "b"));
    EXPECT_FALSE(fence.refuse({"main", 4}, "c"));
    EXPECT_EQ(type_of(fence.refuse({"main", 3}, "d")), kLowerEpoch);
    EXPECT_FALSE(fence.refuse({"other", 1}, "e"));
    EXPECT_EQ(type_of(fence.announce({"main", 3})), kLowerEpoch);
}

TEST(Fence, AnAnnouncementIsHeardOf) {
    Fence fence;
    EXPECT_FALSE(fence.announce({"main", 5}));
    EXPECT_FALSE(fence.announce({"main", 5}));
    EXPECT_EQ(type_of(fence.refuse({"main", 4}, "a")), kLowerEpoch);
    EXPECT_FALSE(fence.refuse({"main", 5}, "a"));
}

TEST(Fence, RefusesPromptsThatItKnows) {
    Fence fence;
    EXPECT_FALSE(fence.refuse({"main", 1}, "a"));
    EXPECT_FALSE(fence.refuse({"main", 1}, "a")) << "it was not taken";
    fence.admit("a");
    EXPECT_EQ(type_of(fence.refuse({"main", 2}, "a")), kKnownPrompt);
    EXPECT_FALSE(fence.refuse({"main", 2}, "b"));
}

TEST(Fence, ForgetsTheOldestPrompts) {
    Fence fence(2);
    for (const char* id : {"a", "b", "b", "c"}) {
        fence.admit(id);
    }
    EXPECT_FALSE(fence.refuse({"main", 1}, "a"));
    EXPECT_TRUE(fence.refuse({"main", 1}, "b"));
    EXPECT_TRUE(fence.refuse({"main", 1}, "c"));
}

TEST(LeadMark, IsTakenOutOfWhatElseIsSaid) {
    json::object data{{"x", 1}, {kLeadKey, LeadMark{"main", 7}.to_json()}};
    const auto mark = LeadMark::take(data);
    ASSERT_TRUE(mark);
    EXPECT_EQ(mark->domain, "main");
    EXPECT_EQ(mark->epoch, 7U);
    EXPECT_EQ(data, (json::object{{"x", 1}}));
    EXPECT_FALSE(LeadMark::take(data));
    for (const char* text :
         {R"({"comfyd_lead": 3})",
          R"({"comfyd_lead": {"domain": "main"}})",
          R"({"comfyd_lead": {"epoch": 1}})",
          R"({"comfyd_lead": {"domain": "main", "epoch": -1}})"}) {
        auto bad = *json::parse_object(text);
        EXPECT_FALSE(LeadMark::take(bad)) << text;
        EXPECT_TRUE(bad.empty());
    }
}

}  // namespace
}  // namespace comfyd::comfy
