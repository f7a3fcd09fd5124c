#include "workflow/plan/determinism.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/test_catalogue.hpp"

namespace comfyd::workflow {
namespace {

// An entry of /object_info; `inputs` as in "required".
std::string class_text(
    const std::string& name,
    const std::string& inputs,
    const std::string& module = "nodes",
    const std::string& more = {}
) {
    return "{\"" + name + "\": {\"input\": {\"required\": {" + inputs +
           "}}, \"output\": [\"IMAGE\"], \"output_is_list\": [false], \"output_name\": "
           "[\"IMAGE\"], \"name\": \"" +
           name + "\", \"python_module\": \"" + module +
           "\", \"output_node\": " + (name.starts_with("Save") ? "true" : "false") + more + "}}";
}

const std::string kCustom = "custom_nodes.pack";

class Determinism : public testing::Test {
protected:
    Determinism() {
        classes_.add(class_text("Sampler", R"("seed": ["INT", {}], "text": ["STRING", {}])"));
        classes_.add(class_text("SaveImage", R"("images": ["IMAGE", {}])"));
        classes_.add(class_text("LoadImage", R"("image": [["a.png"], {"image_upload": true}])"));
    }

    static json::object graph(const std::string& source, const std::string& inputs) {
        return *json::parse_object(
            R"({"1": {"class_type": ")" + source + R"(", "inputs": )" + inputs +
            R"(}, "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}})"
        );
    }
    std::string key(const json::object& workflow) const {
        const auto made = make_reuse_key(workflow, classes_, options_);
        EXPECT_TRUE(made) << made.error().reason;
        return made.value_or("");
    }
    // Empty: it is reusable.
    std::string reason(const std::string& source, const std::string& inputs) const {
        const auto made = make_reuse_key(graph(source, inputs), classes_, options_);
        return made ? std::string() : made.error().reason;
    }
    bool varies(const std::string& source, const std::string& inputs) const {
        return !reason(source, inputs).empty();
    }

    TestClasses classes_;
    ReuseOptions options_;
};

TEST_F(Determinism, TheKeyIsTheSameForTheSame) {
    const auto one = graph("Sampler", R"({"seed": 7, "text": "a"})");
    EXPECT_EQ(key(one).size(), 64U);
    EXPECT_EQ(key(one), key(graph("Sampler", R"({"text": "a", "seed": 7})")));
    EXPECT_NE(key(one), key(graph("Sampler", R"({"text": "a", "seed": 8})")));
    EXPECT_NE(key(one), key(graph("Sampler", R"({"text": "b", "seed": 7})")));
    auto titled = one;
    titled.at("1").as_object()["_meta"] = json::object{{"title", "mine"}};
    EXPECT_EQ(key(one), key(titled));
}

// What such a link leads to would not be in the key.
TEST_F(Determinism, LinksThatCountFromTheEndAreNotReused) {
    auto odd = graph("Sampler", R"({"seed": 7, "text": "a"})");
    odd.at("2").at("inputs").at("images") = json::array{"1", -1};
    const auto made = make_reuse_key(odd, classes_, options_);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().node_id, "2");
}

TEST_F(Determinism, OutputsAreToldByNodeIds) {
    const auto one = graph("Sampler", R"({"seed": 7, "text": "a"})");
    auto renamed = one;
    renamed["3"] = one.at("2");
    renamed.erase("2");
    EXPECT_NE(key(one), key(renamed));
}

TEST_F(Determinism, WhatIsNotRunDoesNotCount) {
    auto more = graph("Sampler", R"({"seed": 7, "text": "a"})");
    const std::string before = key(more);
    more["5"] = json::object{{"class_type", "NobodyKnowsIt"}, {"inputs", json::object()}};
    EXPECT_EQ(key(more), before);
    more["6"] = json::value(more.at("2"));
    EXPECT_NE(key(more), before);
    options_.targets = {"2"};
    EXPECT_EQ(key(more), before);
}

TEST_F(Determinism, WhatIsWrittenIntoPicturesCounts) {
    const auto one = graph("Sampler", R"({"seed": 7, "text": "a"})");
    const std::string before = key(one);
    options_.generation = "after the update";
    EXPECT_NE(key(one), before);
    options_.generation.clear();
    options_.pool = "large";
    EXPECT_NE(key(one), before);
    options_.pool.clear();
    options_.extra_data = {{"client", "x"}};
    EXPECT_EQ(key(one), before);
    options_.extra_data = {{"extra_pnginfo", {{"workflow", 1}}}};
    EXPECT_NE(key(one), before);
}

TEST_F(Determinism, InputsCountByTheirContent) {
    const auto with = [](const std::string& hash) {
        return graph(
            "LoadImage",
            R"({"image": {"__type": "core/ASSET", "info": {"hash": ")" + hash + R"("}}})"
        );
    };
    EXPECT_EQ(key(with("blake3:1")), key(with("blake3:1")));
    EXPECT_NE(key(with("blake3:1")), key(with("blake3:2")));
    EXPECT_TRUE(varies("LoadImage", R"({"image": "a.png"})"));
    EXPECT_TRUE(varies("LoadImage", R"({"image": {"__value__": "a.png"}})"));
}

TEST_F(Determinism, WhatIsNotKnownVaries) {
    EXPECT_TRUE(varies("Unheard", "{}"));
    const auto made = make_reuse_key(graph("Unheard", "{}"), classes_, options_);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().node_id, "1");
    EXPECT_EQ(made.error().class_type, "Unheard");
    EXPECT_FALSE(make_reuse_key({}, classes_, options_));
}

TEST_F(Determinism, WhatIsDeclaredVaries) {
    const std::string inputs = R"({"seed": 7, "text": "a"})";
    EXPECT_FALSE(varies("Sampler", inputs));
    options_.never_nodes = {"Sam*"};
    EXPECT_TRUE(varies("Sampler", inputs));
    options_.never_nodes.clear();
    classes_.add(class_text("Counter", "", "nodes", R"(, "not_idempotent": true)"));
    EXPECT_TRUE(varies("Counter", "{}"));
    classes_.add(class_text("Painter", "", "nodes", R"(, "api_node": true)"));
    EXPECT_TRUE(varies("Painter", "{}"));
    classes_.add(class_text("Writer", "", "comfy_api_nodes.nodes_writer"));
    EXPECT_TRUE(varies("Writer", "{}"));
}

TEST_F(Determinism, KnownClassesOfComfyUI) {
    for (const char* name : {"SaveLoRA", "WebcamCapture", "LoadTrainingDataset"}) {
        classes_.add(class_text(name, ""));
        EXPECT_TRUE(varies(name, "{}")) << name;
    }
    classes_.add(class_text("RandomNoise", R"("noise_seed": ["INT", {}])"));
    EXPECT_FALSE(varies("RandomNoise", R"({"noise_seed": 7})"));
    const char* svd = "SVD_img2vid_Conditioning";
    classes_.add(class_text(svd, R"("augmentation_level": ["FLOAT", {}])"));
    EXPECT_FALSE(varies(svd, R"({"augmentation_level": 0.0})"));
    EXPECT_TRUE(varies(svd, R"({"augmentation_level": 0.02})"));
}

TEST_F(Determinism, NodesOfPacksAreToldByNameAndInputs) {
    for (const char* name :
         {"LoadImageFromURL",
          "Get Date Time String",
          "random_choice",
          "CurrentTimestamp",
          "OllamaGenerate",
          "HTTPRequest2",
          "easy randomInt"}) {
        classes_.add(class_text(name, "", kCustom));
        EXPECT_TRUE(varies(name, "{}")) << name;
    }
    for (const char* name :
         {"SetTimestepRange", "Upscaler", "DatesetSharpen", "ScreeningFilter", "KnowledgeNode"}) {
        classes_.add(class_text(name, "", kCustom));
        EXPECT_FALSE(varies(name, "{}")) << name;
    }
    classes_.add(class_text("Random Crop", R"("seed": ["INT", {}])", kCustom));
    EXPECT_TRUE(varies("Random Crop", "{}"));
    EXPECT_FALSE(varies("Random Crop", R"({"seed": 1})"));
    EXPECT_TRUE(varies("Random Crop", R"({"seed": -1})")) << "the node chooses one itself";

    const std::string inputs = R"("video_path": ["STRING", {}], "model_path": ["STRING", {}])";
    classes_.add(class_text("Player", inputs, kCustom));
    EXPECT_TRUE(varies("Player", R"({"video_path": "/data/a.mp4"})"));
    EXPECT_FALSE(varies("Player", R"({"video_path": ""})"));
    EXPECT_FALSE(varies("Player", R"({"model_path": "a.safetensors"})"));
}

TEST_F(Determinism, AnAddressLeadsToWhoKnowsWhat) {
    EXPECT_TRUE(varies("Sampler", R"({"seed": 7, "text": "https://example.com/a.png"})"));
    EXPECT_FALSE(varies("Sampler", R"({"seed": 7, "text": "a web page, https://example.com"})"));
}

}  // namespace
}  // namespace comfyd::workflow
