#include "models/known_files.hpp"

#include <gtest/gtest.h>

#include <array>

#include "models/family.hpp"

namespace comfyd::models {
namespace {

constexpr std::array kLoras{std::string_view("loras")};

WorkerFiles files(std::string_view text) {
    return read_worker_files(*json::parse_object(text));
}

TEST(KnownFiles, WhatAllAgreeOnIsKnown) {
    KnownFiles known;
    EXPECT_TRUE(known.empty());
    known.set("a", files(R"({"files": [{"folder": "loras", "name": "x.safetensors", "size": 5,
        "sha256": null, "kind": "lora", "family": "sd15", "dtype": "F16"}]})"));
    EXPECT_EQ(known.agreed(kLoras, "x.safetensors").family, "sd15");
    EXPECT_EQ(known.agreed(kLoras, "x.safetensors").bytes, 5U);
    EXPECT_EQ(known.agreed(kLoras, "y.safetensors"), FileFacts());
    const auto before = known.changes();
    known.set("b", files(R"({"files": [{"folder": "loras", "name": "x.safetensors", "size": 5,
        "kind": "lora", "family": "sdxl"}]})"));
    EXPECT_GT(known.changes(), before);
    EXPECT_EQ(known.agreed(kLoras, "x.safetensors").family, "") << "two files under one name";
    EXPECT_EQ(known.agreed(kLoras, "x.safetensors").kind, "lora");
    known.forget("b");
    EXPECT_EQ(known.agreed(kLoras, "x.safetensors").family, "sd15");
    EXPECT_EQ(known.of("b"), nullptr);
}

TEST(KnownFiles, AnAgentMayTellAnything) {
    for (const char* odd :
         {"{}",
          R"({"files": 5})",
          R"({"files": [5, null, {}, {"folder": 5, "name": "x"}, {"folder": "loras", "name": ""}]})"
         }) {
        EXPECT_TRUE(files(odd).empty()) << odd;
    }
    const WorkerFiles read = files(
        R"({"files": [{"folder": "loras", "name": "x", "size": -5, "sha256": "no hash",
            "kind": ["lora"], "family": "a family with spaces", "dtype": 5}]})"
    );
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read.begin()->second, FileFacts());
}

TEST(Family, ALoraIsOfAnotherFamilyOnlyWhereThatIsCertain) {
    EXPECT_TRUE(is_of_other_family("sd15", "sdxl"));
    EXPECT_TRUE(is_of_other_family("sdxl", "sd15"));
    EXPECT_TRUE(is_of_other_family("flux", "sdxl"));
    EXPECT_TRUE(is_of_other_family("sd3", "flux"));
    EXPECT_TRUE(is_of_other_family("wan", "hunyuan-video"));
    for (const auto& [lora, model] :
         {std::pair("sd15", "sd15"),
          std::pair("flux", "flux-schnell"),
          std::pair("flux", "chroma"),
          std::pair("flux", "hunyuan-video"),
          std::pair("", "sdxl"),
          std::pair("sd15", ""),
          std::pair("sd15", "some new family")}) {
        EXPECT_FALSE(is_of_other_family(lora, model)) << lora << " on " << model;
    }
}

}  // namespace
}  // namespace comfyd::models
