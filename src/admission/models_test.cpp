#include "admission/models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::admission {
namespace {

using models::Register;
using models::RegisteredModel;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

RegisteredModel model(const std::string& folder, const std::string& name, int current = 1) {
    RegisteredModel made;
    made.folder = folder;
    made.name = name;
    made.current = current;
    made.last = 2;
    made.versions = {
        {.number = 1, .sources = {"https://example.com/1"}},
        {.number = 2, .sources = {"https://example.com/2"}}
    };
    return made;
}

class WantedModelsTest : public testing::Test {
protected:
    WantedModelsTest() {
        rules_.registered = [this] { return register_; };
    }
    void know(const std::vector<RegisteredModel>& all) {
        register_ = std::make_shared<Register>(all, std::vector<models::ModelRecord>());
    }
    static workflow::Catalogue catalogue(bool fetches, const std::string& also = "") {
        json::object info = *json::parse_object(R"({
            "CheckpointLoaderSimple": {"input": {"required": {"ckpt_name": [["there.safetensors"], {}]}}, "output": ["MODEL", "CLIP", "VAE"], "output_node": false},
            "LoraLoader": {"input": {"required": {"lora_name": [["there.safetensors"], {}]}}, "output": ["MODEL", "CLIP"], "output_node": false},
            "SaveImage": {"input": {"required": {"filename_prefix": ["STRING", {}]}}, "output": [], "output_node": true}
        })");
        if (!also.empty()) {
            info.at("CheckpointLoaderSimple")
                .at("input")
                .at("required")
                .at("ckpt_name")
                .at(0)
                .as_array()
                .emplace_back(also);
        }
        auto classes = *workflow::NodeClasses::from_object_info(info);
        return workflow::Catalogue(
            {{.worker = "w", .classes = std::move(classes), .fetches_models = fetches}}
        );
    }
    static json::object graph(const std::string& checkpoint, const std::string& lora = "") {
        json::object made{
            {"1",
             {{"class_type", "CheckpointLoaderSimple"}, {"inputs", {{"ckpt_name", checkpoint}}}}}
        };
        if (!lora.empty()) {
            made["2"] = {{"class_type", "LoraLoader"}, {"inputs", {{"lora_name", lora}}}};
        }
        return made;
    }
    WantedModels find(const json::object& graph, const json::object* given = nullptr) {
        return find_wanted_models(rules_, "red", graph, given, catalogue(true));
    }
    static json::object saved(const std::string& name, const std::string& url) {
        return {
            {"nodes",
             json::array{json::object{
                 {"properties",
                  {{"models",
                    json::array{
                        json::object{{"name", name}, {"url", url}, {"directory", "checkpoints"}}
                    }}}}
             }}}
        };
    }

    ModelRules rules_;
    std::shared_ptr<const Register> register_ = std::make_shared<Register>();
};

TEST_F(WantedModelsTest, TheRegisterKnowsWhichFileANameMeans) {
    know({model("checkpoints", "new.safetensors", 2), model("loras", "there.safetensors")});
    json::object asked = graph("new.safetensors", "there.safetensors");
    const WantedModels wanted = find(asked);
    ASSERT_THAT(wanted.models, SizeIs(2));
    EXPECT_EQ(wanted.models[0].name, "new@2.safetensors");
    EXPECT_THAT(wanted.models[0].sources, ElementsAre("https://example.com/2"));
    ASSERT_THAT(wanted.coming, SizeIs(1)) << "the other one is there";
    EXPECT_EQ(wanted.coming[0].input, "ckpt_name");
    wanted.apply(asked);
    EXPECT_EQ(asked.at("1").at("inputs").at("ckpt_name"), "new@2.safetensors");
    EXPECT_EQ(asked.at("2").at("inputs").at("lora_name"), "there.safetensors");
}

TEST_F(WantedModelsTest, AFileInAnotherFolderIsAnother) {
    know({model("loras", "new.safetensors")});
    EXPECT_THAT(find(graph("new.safetensors")).models, IsEmpty());
}

TEST_F(WantedModelsTest, WhereOneIsUnknownComfyUiRefusesInItsOwnWords) {
    know({model("checkpoints", "new.safetensors")});
    json::object asked = graph("new.safetensors");
    asked["3"] = graph("nobody.safetensors").at("1");
    const WantedModels wanted = find(asked);
    EXPECT_THAT(wanted.models, SizeIs(1));
    EXPECT_THAT(wanted.coming, IsEmpty());
}

TEST_F(WantedModelsTest, WorkflowsDecideNothingUnlessTheyMay) {
    const std::string address = "https://huggingface.co/a/b/resolve/main/c.safetensors";
    EXPECT_THAT(find(graph(address)).models, IsEmpty());
    const json::object given = saved("c.safetensors", address);
    EXPECT_THAT(find(graph("c.safetensors"), &given).models, IsEmpty());
}

TEST_F(WantedModelsTest, WhatAWorkflowNamesLiesApart) {
    rules_.takes_addresses = rules_.takes_properties = true;
    rules_.hosts = {"huggingface.co", "models.example.com"};
    const std::string address = "https://huggingface.co/a/b/resolve/main/there.safetensors";
    const json::object given = saved("c.safetensors", "https://models.example.com/c.safetensors");
    const WantedModels by_address = find(graph(address));
    const WantedModels by_note = find(graph("c.safetensors"), &given);
    ASSERT_THAT(by_address.models, SizeIs(1));
    ASSERT_THAT(by_note.models, SizeIs(1));
    EXPECT_THAT(by_address.models[0].name, StartsWith("from-"));
    EXPECT_THAT(by_note.models[0].name, StartsWith("from-"));
    EXPECT_THAT(by_address.changes, SizeIs(1));
    const json::object other =
        saved("c.safetensors", "https://models.example.com/other/c.safetensors");
    EXPECT_NE(find(graph("c.safetensors"), &other).models[0].name, by_note.models[0].name);
    // What some worker has under that name is that.
    const json::object poison = saved("there.safetensors", "https://models.example.com/evil");
    EXPECT_THAT(find(graph("there.safetensors"), &poison).models, IsEmpty());
    // Wherever it leads, it leads to a name of its own.
    const WantedModels above = find(graph("hf:a/b/..%2F..%2Fc.safetensors"));
    ASSERT_THAT(above.models, SizeIs(1));
    EXPECT_THAT(above.models[0].name, testing::MatchesRegex("from-[0-9a-f]+/c.safetensors"));
    for (const char* odd :
         {"https://elsewhere.example/c.safetensors",
          "http://169.254.169.254/c.safetensors",
          "https://huggingface.co/a/b/resolve/main/c.ckpt",
          "https://models.example.com/%00.safetensors",
          "https://models.example.com/",
          "file:///etc/c.safetensors",
          "civitai:12",
          "hf:"}) {
        EXPECT_THAT(find(graph(odd)).models, IsEmpty()) << odd;
        const json::object noted = saved("d.safetensors", odd);
        EXPECT_THAT(find(graph("d.safetensors"), &noted).models, IsEmpty()) << odd;
    }
}

// What one tenant has from an address of its own is on the worker, and no business of others.
TEST_F(WantedModelsTest, WhatATenantHasFromAnAddressIsItsOwn) {
    rules_.takes_addresses = true;
    const std::string address = "https://models.example.com/secret/style.safetensors?key=1";
    const std::string name = find(graph(address)).models.at(0).name;
    const workflow::Catalogue all = catalogue(true, name);
    // Else it is a file that nobody has.
    const auto may_have = [&](const std::string& tenant, const std::string& value) {
        const json::object asked = graph(value);
        const WantedModels wanted = find_wanted_models(rules_, tenant, asked, nullptr, all);
        const workflow::MissingFile* coming = wanted.coming.empty() ? nullptr : &wanted.coming[0];
        return coming != nullptr && coming->value == json::value(name) && coming->is_coming &&
               judge_need(asked, all, {}, wanted).has_value();
    };
    EXPECT_TRUE(may_have("red", address)) << "it is there already";
    EXPECT_TRUE(may_have("red", name)) << "as its pictures name it";
    EXPECT_FALSE(may_have("blue", name));
    EXPECT_FALSE(may_have("", name));
    EXPECT_THAT(all.object_info()->text, testing::Not(testing::HasSubstr("from-")));
    // Who knows the address may have it, too, under a name of their own.
    const WantedModels others = find_wanted_models(rules_, "blue", graph(address), nullptr, all);
    ASSERT_THAT(others.models, SizeIs(1));
    EXPECT_NE(others.models[0].name, name);
    rules_.takes_addresses = false;
    EXPECT_FALSE(may_have("red", name)) << "nor its own, where workflows may not say";
}

TEST_F(WantedModelsTest, AnythingMayStandInANote) {
    rules_.takes_properties = true;
    for (const char* odd :
         {R"({"nodes": 5})",
          R"({"nodes": [5, null, {}, {"properties": 5}, {"properties": {"models": 5}}]})",
          R"({"nodes": [{"properties": {"models": [5, {}, {"name": 5}, {"name": "d.safetensors"}]}}]})"
         }) {
        const json::object given = *json::parse_object(odd);
        EXPECT_THAT(find(graph("d.safetensors"), &given).models, IsEmpty()) << odd;
    }
}

TEST_F(WantedModelsTest, SomeWorkerMustBeAbleToFetch) {
    know({model("checkpoints", "new.safetensors")});
    const json::object asked = graph("new.safetensors");
    for (const bool fetches : {true, false}) {
        const workflow::Catalogue all = catalogue(fetches);
        const WantedModels wanted = find_wanted_models(rules_, "red", asked, nullptr, all);
        const auto need = judge_need(asked, all, {}, wanted);
        EXPECT_EQ(need.has_value(), fetches);
        if (!need) {
            EXPECT_EQ(need.error().error.code, Code::no_capable_worker);
        } else {
            EXPECT_EQ(
                need->encoded(),
                "CheckpointLoaderSimple\nCheckpointLoaderSimple\tckpt_name\tnew.safetensors"
            );
        }
    }
}

}  // namespace
}  // namespace comfyd::admission
