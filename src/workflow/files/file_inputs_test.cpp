#include "workflow/files/file_inputs.hpp"

#include <gtest/gtest.h>

#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::recorded_catalogue;

class NoClasses final : public PromptClasses {
public:
    const NodeDefinition* find(std::string_view) const override { return nullptr; }
};

json::object node(const char* class_type, const char* input, json::value value) {
    json::object inputs;
    inputs[input] = std::move(value);
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}

TEST(FileInputs, SourcesAreToldFromNames) {
    for (const char* text :
         {"http://a/b", "HTTPS://a.example/b.png", " https://a/b ", "data:,", "asset:1", "blake3:0"
         }) {
        EXPECT_TRUE(is_file_source(text)) << text;
    }
    for (const char* text :
         {"", "cat.png", "ftp://a/b", "see https://a/b", "https:/a", "sub/cat.png [input]"}) {
        EXPECT_FALSE(is_file_source(text)) << text;
    }
}

TEST(FileInputs, AreFoundByWhatTheClassesSay) {
    json::object workflow;
    workflow["1"] = node("LoadImage", "image", "https://a.example/cat.png");
    workflow["2"] = node("LoadImage", "image", "cat.png");
    workflow["3"] = node("CLIPTextEncode", "text", "https://a.example/cat.png");
    workflow["4"] = node("LoadAudio", "audio", json::object{{"__value__", " data:;base64,AA== "}});
    workflow["5"] = node("LoadVideo", "file", "asset:x");
    workflow["6"] = node("LoadLatent", "latent", "blake3:x");
    workflow["7"] = node("SaveImage", "filename_prefix", "https://a.example/out");
    workflow["8"] = node("LoadImage", "image", json::array{"3", 0});
    const auto found = find_file_sources(workflow, recorded_catalogue());
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found[0].node_id, "1");
    EXPECT_EQ(found[0].class_type, "LoadImage");
    EXPECT_EQ(found[0].input, "image");
    EXPECT_EQ(found[0].kind, FileKind::image);
    EXPECT_EQ(found[0].source, "https://a.example/cat.png");
    EXPECT_EQ(found[1].kind, FileKind::audio);
    EXPECT_EQ(found[1].source, "data:;base64,AA==");
    EXPECT_EQ(found[2].kind, FileKind::video);
    EXPECT_EQ(found[3].kind, FileKind::other);

    place_file(workflow, found[0], {{"__type", "core/ASSET"}});
    EXPECT_EQ(workflow.at("1").at("inputs").at("image").at("__type"), "core/ASSET");
}

TEST(FileInputs, WellKnownLoadersNeedNoClasses) {
    json::object workflow;
    workflow["1"] = node("LoadImageMask", "image", "https://a.example/mask.png");
    workflow["2"] = node("LoadImageMask", "channel", "https://a.example/mask.png");
    workflow["3"] = node("SomeLoader", "image", "https://a.example/mask.png");
    workflow["4"] = "not a node";
    const auto found = find_file_sources(workflow, NoClasses());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].node_id, "1");
}

}  // namespace
}  // namespace comfyd::workflow
