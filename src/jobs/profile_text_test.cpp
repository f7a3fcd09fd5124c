#include "jobs/profile_text.hpp"

#include <gtest/gtest.h>

namespace comfyd::jobs {
namespace {

TEST(ProfileText, SurvivesTheLedger) {
    scheduler::Profile profile;
    profile.requirement = Requirement::decode("KSampler\nSaveImage");
    profile.models = {{"checkpoint/a", 5}, {"lora/b", 1ULL << 40}};
    profile.shape = "abc";
    profile.work_units = 12.5;
    profile.heuristic_seconds = 3.25;
    profile.vram_bytes = 6'000'000'000;
    profile.can_be_merged = true;
    const auto back = decode_profile(
        encode_profile(std::make_shared<const scheduler::Profile>(profile)), profile.requirement
    );
    EXPECT_EQ(back->models, profile.models);
    EXPECT_EQ(back->shape, profile.shape);
    EXPECT_EQ(back->work_units, profile.work_units);
    EXPECT_EQ(back->heuristic_seconds, profile.heuristic_seconds);
    EXPECT_EQ(back->vram_bytes, profile.vram_bytes);
    EXPECT_TRUE(back->can_be_merged);
    EXPECT_EQ(back->requirement, profile.requirement);
    for (const char* bad : {"", "[]", "{", R"({"models":[1,{}],"seconds":"x","vram_bytes":-1})"}) {
        EXPECT_EQ(decode_profile(bad, Requirement::decode("A"))->requirement.encoded(), "A") << bad;
        EXPECT_EQ(decode_profile(bad, Requirement::decode("A"))->vram_bytes, 0U) << bad;
    }
}

}  // namespace
}  // namespace comfyd::jobs
