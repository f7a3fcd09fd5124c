#include "models/register.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "models/manager_list.hpp"

namespace comfyd::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RegisteredModel model(const std::string& folder, const std::string& name, int versions = 1) {
    RegisteredModel made;
    made.folder = folder;
    made.name = name;
    made.last = versions;
    made.current = versions;
    for (int i = 1; i <= versions; ++i) {
        made.versions.push_back(
            {.number = i, .sources = {"https://example.com/" + std::to_string(i)}}
        );
    }
    return made;
}

std::string found(
    const Register& all, std::initializer_list<std::string_view> folders, std::string_view name
) {
    const std::vector<std::string_view> in(folders);
    const auto wanted = all.resolve(in, name);
    return wanted ? wanted->folder + "/" + wanted->name + " " + wanted->sources.front() : "";
}

TEST(Register, ANameMeansTheCurrentVersionAndANumberThatOne) {
    RegisteredModel ink = model("loras", "set/ink.safetensors", 3);
    ink.current = 2;
    const Register all({ink, model("loras", "a.b@c.safetensors")}, {});
    EXPECT_EQ(
        found(all, {"loras"}, "set/ink.safetensors"),
        "loras/set/ink@2.safetensors https://example.com/2"
    );
    EXPECT_EQ(
        found(all, {"loras"}, "set/ink@1.safetensors"),
        "loras/set/ink.safetensors https://example.com/1"
    );
    EXPECT_EQ(
        found(all, {"loras"}, "set/ink@3.safetensors"),
        "loras/set/ink@3.safetensors https://example.com/3"
    );
    EXPECT_EQ(
        found(all, {"loras"}, "a.b@c.safetensors"), "loras/a.b@c.safetensors https://example.com/1"
    );
    for (const char* odd :
         {"set/ink@4.safetensors",
          "set/ink@0.safetensors",
          "set/ink@-1.safetensors",
          "set/ink@.safetensors",
          "set/ink@99999999999999999999.safetensors",
          "ink.safetensors",
          "",
          "@",
          "@1",
          "@1.",
          "/",
          "set@2/ink.safetensors"}) {
        EXPECT_EQ(found(all, {"loras"}, odd), "") << odd;
    }
}

TEST(Register, FoldersAreAskedInTheirOrderAndWithoutThemNothingIsGuessed) {
    const Register all(
        {model("text_encoders", "t5.safetensors"),
         model("clip", "t5.safetensors"),
         model("vae", "one.safetensors")},
        {}
    );
    EXPECT_THAT(found(all, {"text_encoders", "clip"}, "t5.safetensors"), HasSubstr("text_enc"));
    EXPECT_EQ(found(all, {"loras"}, "one.safetensors"), "");
    EXPECT_THAT(found(all, {}, "one.safetensors"), HasSubstr("vae/"));
    EXPECT_EQ(found(all, {}, "t5.safetensors"), "") << "it may be either";
}

TEST(Register, WhatIsStoredComesBackAndTheConfigurationCountsFirst) {
    RegisteredModel stored = model("vae", "a.safetensors", 2);
    stored.revision = 7;
    stored.versions[1].sha256 = std::string(64, 'a');
    stored.versions[1].bytes = 12;
    stored.versions[1].created_at = Time(std::chrono::seconds(1'700'000'000));
    EXPECT_EQ(from_record(to_record(stored)), stored);
    const Register all(
        {model("vae", "b.safetensors")},
        {to_record(stored), to_record(model("vae", "b.safetensors", 2)), {"odd", 1, {}}}
    );
    EXPECT_EQ(all.models().size(), 2U);
    EXPECT_EQ(all.find("vae/b.safetensors")->versions.size(), 1U);
    const WantedModel wanted = *all.resolve(std::array{std::string_view("vae")}, "a.safetensors");
    EXPECT_EQ(WantedModel::from_json(wanted.to_json()), wanted);
    EXPECT_EQ(wanted.bytes, 12U);
}

TEST(Register, WhatAContentIsStandsBesideTheModels) {
    const std::string sha256(64, 'c');
    FileFacts facts{"lora", "sdxl", "F16", 200, {}};
    const Register all({}, {to_record(sha256, facts), to_record("no hash", facts)});
    EXPECT_TRUE(all.models().empty());
    EXPECT_EQ(all.contents(), 1U);
    ASSERT_NE(all.find_content(sha256), nullptr);
    EXPECT_EQ(*all.find_content(sha256), facts);
    EXPECT_EQ(all.find_content(""), nullptr);
}

TEST(Register, AnUploadSaysItsHash) {
    const std::string sha256(64, 'a');
    const std::string upload = "upload:" + sha256;
    for (const json::array& sources :
         {json::array{json::value(upload)},
          json::array{json::value(upload), "https://example.com/c"},
          json::array{"s3://bucket/c", json::value(upload)}}) {
        const auto version = read_version("vae", "c.safetensors", {{"sources", sources}});
        ASSERT_TRUE(version) << version.error().message;
        EXPECT_EQ(version->sha256, sha256);
    }
    const json::object other{{"source", upload}, {"sha256", std::string(64, 'b')}};
    EXPECT_FALSE(read_version("vae", "c.safetensors", other));
    const json::array both{json::value(upload), json::value("upload:" + std::string(64, 'b'))};
    EXPECT_FALSE(read_version("vae", "c.safetensors", {{"sources", both}}));
}

TEST(Register, VersionsAreReadWithCare) {
    const json::object good{
        {"sources", json::array{"hf:a/b/c.safetensors", "https://example.com/c"}},
        {"bytes", 5},
        {"sha256", std::string(64, 'B')},
    };
    const auto version = read_version("vae", "c.safetensors", good);
    ASSERT_TRUE(version) << version.error().message;
    EXPECT_THAT(version->sources, ElementsAre("hf:a/b/c.safetensors", "https://example.com/c"));
    EXPECT_EQ(version->sha256, std::string(64, 'b'));
    const json::object one{{"source", "https://example.com/c"}};
    for (const auto& [folder, name] :
         {std::pair{"vae", "../c.safetensors"},
          std::pair{"../vae", "c.safetensors"},
          std::pair{"vae", "c.exe"},
          std::pair{"vae", "c@2.safetensors"},
          std::pair{"", "c.safetensors"},
          std::pair{"vae", ""}}) {
        EXPECT_FALSE(read_version(folder, name, one)) << folder << name;
    }
    json::array many(9, json::value("https://example.com/c"));
    for (const json::object& odd :
         {json::object{},
          json::object{{"source", 5}},
          json::object{{"source", ""}},
          json::object{{"source", "ftp://example.com/c"}},
          json::object{{"sources", json::array{5}}},
          json::object{{"sources", json::array{}}},
          json::object{{"sources", std::move(many)}},
          json::object{{"source", "https://example.com/c"}, {"sources", json::array{"https://b"}}},
          json::object{{"source", "https://example.com/c"}, {"bytes", -1}},
          json::object{{"source", "https://example.com/c"}, {"sha256", "short"}}}) {
        EXPECT_FALSE(read_version("vae", "c.safetensors", odd)) << json::serialize(odd);
    }
}

TEST(ManagerList, IsReadAsFarAsItNamesModels) {
    const auto list = read_manager_list(R"({"models": [
        {"type": "checkpoint", "save_path": "default", "filename": "a.safetensors", "url": "https://example.com/a"},
        {"type": "lora", "save_path": "loras/SD1.5/", "filename": "b.safetensors", "url": "https://example.com/b"},
        {"type": "lora", "save_path": "loras/SD1.5", "filename": "b.safetensors", "url": "https://example.com/again"},
        {"type": "VAE", "save_path": "default", "filename": "c.ckpt", "url": "https://example.com/c"},
        {"type": "other", "save_path": "default", "filename": "d.safetensors", "url": "https://example.com/d"},
        {"type": "lora", "save_path": "../../etc", "filename": "e.safetensors", "url": "https://example.com/e"},
        {"type": "lora", "save_path": "default", "filename": "<huggingface>", "url": "https://example.com/f"},
        {"type": "lora", "save_path": "default", "filename": "g.safetensors", "url": "gopher://example.com/g"},
        5, null, {}
    ]})");
    ASSERT_TRUE(list) << list.error().message;
    std::vector<std::string> paths;
    for (const RegisteredModel& one : *list) {
        paths.push_back(one.path());
    }
    EXPECT_THAT(paths, ElementsAre("checkpoints/a.safetensors", "loras/SD1.5/b.safetensors"));
    EXPECT_EQ((*list)[1].versions.front().sources.front(), "https://example.com/b");
    EXPECT_THAT(*read_manager_list(R"({"models": []})"), IsEmpty());
    for (const char* odd : {"", "[]", "{}", R"({"models": 5})", "nonsense"}) {
        EXPECT_FALSE(read_manager_list(odd)) << odd;
    }
}

}  // namespace
}  // namespace comfyd::models
