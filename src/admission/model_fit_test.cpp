#include "admission/model_fit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::admission {
namespace {

using models::Register;
using models::RegisteredModel;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kHash(64, 'a');

class ModelFit : public testing::Test {
protected:
    ModelFit() {
        rules_.registered = [this] { return register_; };
        rules_.files = &files_;
    }

    static workflow::Catalogue::Entry worker(const std::string& id, bool has_agent = true) {
        const json::object info = *json::parse_object(R"({
            "CheckpointLoaderSimple": {"input": {"required": {"ckpt_name": [["sdxl.safetensors", "sd15.safetensors", "unread.safetensors"], {}]}}, "output": ["MODEL", "CLIP", "VAE"], "output_node": false},
            "LoraLoader": {"input": {"required": {"model": ["MODEL", {}], "clip": ["CLIP", {}], "lora_name": [["ink.safetensors", "wide.safetensors", "unread.safetensors"], {}], "strength_model": ["FLOAT", {}]}}, "output": ["MODEL", "CLIP"], "output_node": false},
            "ModelSamplingDiscrete": {"input": {"required": {"model": ["MODEL", {}]}}, "output": ["MODEL"], "output_node": false},
            "ModelMergeSimple": {"input": {"required": {"model1": ["MODEL", {}], "model2": ["MODEL", {}]}}, "output": ["MODEL"], "output_node": false},
            "Switch": {"input": {"required": {"model": ["MODEL", {}], "other": ["*", {}]}}, "output": ["MODEL"], "output_node": false},
            "SaveImage": {"input": {"required": {"filename_prefix": ["STRING", {}]}}, "output": [], "output_node": true}
        })");
        return {
            .worker = id,
            .classes = *workflow::NodeClasses::from_object_info(info),
            .fetches_models = has_agent
        };
    }
    void tell(const std::string& worker, const json::object& kinds_and_families) {
        models::WorkerFiles files;
        for (const auto& [path, words] : kinds_and_families) {
            const json::array& pair = words.get_array();
            files[std::string(path)] = {
                std::string(pair[0].get_string()), std::string(pair[1].get_string()), "F16", {}, {}
            };
        }
        files_.set(worker, std::move(files));
    }
    void tell_usual(const std::string& worker) {
        tell(
            worker,
            {{"checkpoints/sdxl.safetensors", {"checkpoint", "sdxl"}},
             {"checkpoints/sd15.safetensors", {"checkpoint", "sd15"}},
             {"loras/ink.safetensors", {"lora", "sd15"}},
             {"loras/wide.safetensors", {"lora", "sdxl"}}}
        );
    }
    // The LoRA over the checkpoint, with something between them.
    static json::object graph(
        const std::string& checkpoint, const std::string& lora, const json::object& between = {}
    ) {
        json::object made{
            {"4",
             {{"class_type", "CheckpointLoaderSimple"}, {"inputs", {{"ckpt_name", checkpoint}}}}},
            {"10",
             {{"class_type", "LoraLoader"},
              {"inputs",
               {{"lora_name", lora},
                {"strength_model", 1.0},
                {"model", json::array{between.empty() ? "4" : "5", 0}},
                {"clip", json::array{"4", 1}}}}}}
        };
        if (!between.empty()) {
            made["5"] = between;
        }
        return made;
    }
    std::vector<workflow::MissingFile> find(const json::object& graph) const {
        return find_unfit_models(rules_, graph, workflow::Catalogue(workers_));
    }

    ModelRules rules_;
    models::KnownFiles files_;
    std::shared_ptr<const Register> register_ = std::make_shared<Register>();
    std::vector<workflow::Catalogue::Entry> workers_{worker("w0")};
};

TEST_F(ModelFit, ALoraOfAnotherFamilyIsFound) {
    EXPECT_THAT(find(graph("sdxl.safetensors", "ink.safetensors")), IsEmpty()) << "nobody has read";
    tell_usual("w0");
    const auto found = find(graph("sdxl.safetensors", "ink.safetensors"));
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].node_id, "10");
    EXPECT_EQ(found[0].input, "lora_name");
    EXPECT_EQ(
        found[0].refusal().text,
        "'ink.safetensors' is a LoRA for sd15, and 'sdxl.safetensors' is of the family sdxl"
    );
    EXPECT_EQ(unfit_warning(found[0]).at("code"), "MODEL_UNFIT");
    EXPECT_THAT(find(graph("sd15.safetensors", "ink.safetensors")), IsEmpty());
    EXPECT_THAT(find(graph("sdxl.safetensors", "wide.safetensors")), IsEmpty());
    EXPECT_THAT(find(graph("unread.safetensors", "ink.safetensors")), IsEmpty());
    EXPECT_THAT(find(graph("sdxl.safetensors", "unread.safetensors")), IsEmpty());
}

TEST_F(ModelFit, TheModelIsFollowedThroughWhatPassesItOn) {
    tell_usual("w0");
    const json::object sampling{
        {"class_type", "ModelSamplingDiscrete"}, {"inputs", {{"model", json::array{"4", 0}}}}
    };
    EXPECT_THAT(find(graph("sdxl.safetensors", "ink.safetensors", sampling)), SizeIs(1));
    const json::object other_lora{
        {"class_type", "LoraLoader"},
        {"inputs",
         {{"lora_name", "wide.safetensors"},
          {"model", json::array{"4", 0}},
          {"clip", json::array{"4", 1}}}}
    };
    EXPECT_THAT(find(graph("sdxl.safetensors", "ink.safetensors", other_lora)), SizeIs(1));
}

TEST_F(ModelFit, WhatIsNotCertainIsNotJudged) {
    tell_usual("w0");
    const json::array four{"4", 0};
    for (const json::object& between :
         {json::object{
              {"class_type", "ModelMergeSimple"}, {"inputs", {{"model1", four}, {"model2", four}}}
          },
          json::object{{"class_type", "Switch"}, {"inputs", {{"model", four}, {"other", four}}}},
          json::object{{"class_type", "OfAnUnknownPack"}, {"inputs", {{"model", four}}}},
          json::object{
              {"class_type", "ModelSamplingDiscrete"}, {"inputs", {{"model", json::array{"5", 0}}}}
          },
          json::object{
              {"class_type", "ModelSamplingDiscrete"}, {"inputs", {{"model", json::array{"9", 0}}}}
          },
          json::object{{"class_type", "ModelSamplingDiscrete"}, {"inputs", {{"model", 5}}}},
          json::object{{"class_type", 5}}}) {
        EXPECT_THAT(find(graph("sdxl.safetensors", "ink.safetensors", between)), IsEmpty())
            << json::serialize(between);
    }
    json::object off = graph("sdxl.safetensors", "ink.safetensors");
    off["10"].as_object()["inputs"].as_object()["strength_model"] = 0;
    EXPECT_THAT(find(off), IsEmpty()) << "it is switched off";
    // The same LoRA, where it belongs, too: what is said is said by its name.
    json::object twice = graph("sdxl.safetensors", "ink.safetensors");
    twice["14"] = graph("sd15.safetensors", "")["4"];
    twice["20"] = twice["10"];
    twice["20"].as_object()["inputs"].as_object()["model"] = json::array{"14", 0};
    EXPECT_THAT(find(twice), IsEmpty());
}

TEST_F(ModelFit, WorkersMayHaveDifferentFilesOfOneName) {
    tell_usual("w0");
    workers_.push_back(worker("w1"));
    const json::object asked = graph("sdxl.safetensors", "ink.safetensors");
    EXPECT_THAT(find(asked), IsEmpty()) << "w1 has not told";
    tell_usual("w1");
    EXPECT_THAT(find(asked), SizeIs(1));
    tell(
        "w1",
        {{"checkpoints/sdxl.safetensors", {"checkpoint", "sdxl"}},
         {"loras/ink.safetensors", {"lora", "sdxl"}}}
    );
    EXPECT_THAT(find(asked), IsEmpty());
    workers_[1] = worker("w1", false);
    EXPECT_THAT(find(asked), IsEmpty()) << "nobody can tell what it has";
}

TEST_F(ModelFit, TheRegisterKnowsWhatNoWorkerHasYet) {
    RegisteredModel lora;
    lora.folder = "loras";
    lora.name = "new.safetensors";
    lora.last = 1;
    lora.versions = {{.number = 1, .sources = {"https://example.com/1"}, .sha256 = kHash}};
    register_ = std::make_shared<Register>(
        std::vector{lora}, std::vector{models::to_record(kHash, {"lora", "sd15", "F16", 5, {}})}
    );
    tell_usual("w0");
    EXPECT_THAT(find(graph("sdxl.safetensors", "new.safetensors")), SizeIs(1));
    EXPECT_THAT(find(graph("sd15.safetensors", "new.safetensors")), IsEmpty());
}

TEST_F(ModelFit, AFileOfNoUseToItsLoaderIsFound) {
    tell("w0", {{"checkpoints/sdxl.safetensors", {"lora", ""}}});
    const auto found = find(graph("sdxl.safetensors", "ink.safetensors"));
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].node_id, "4");
    EXPECT_THAT(found[0].refusal().text, HasSubstr("is a lora by what is in it, and of no use in"));
    tell("w0", {{"checkpoints/sdxl.safetensors", {"some new kind", ""}}});
    EXPECT_THAT(find(graph("sdxl.safetensors", "ink.safetensors")), IsEmpty());
}

}  // namespace
}  // namespace comfyd::admission
