// What admission makes of submissions, by itself: no request, no route.
#include "admission/admit.hpp"

#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using admission::Admitted;
using admission::Decision;
using admission::Manner;
using admission::Refusal;
using admission::Submission;
using test::Arrangement;
using test::parse;
using test::TestApi;

Arrangement with_workers() {
    Arrangement arrangement;
    const auto classes = [](std::string_view object_info) {
        return *workflow::NodeClasses::from_object_info(*json::parse(object_info));
    };
    // One of them has a file of the operator's.
    arrangement.catalogue =
        std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>{
            {"plain",
             classes(R"({
                "LoadImage": {"input": {"required": {"image": [["a.png"], {"image_upload": true}]}}, "output": ["IMAGE"]},
                "Text": {"input": {"required": {"text": ["STRING", {}], "seed": ["INT", {}]}}, "output": ["IMAGE"]},
                "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true}})"
             )},
            {"rich",
             classes(R"({
                "LoadImage": {"input": {"required": {"image": [["a.png", "cat.png"], {"image_upload": true}]}}, "output": ["IMAGE"]},
                "Text": {"input": {"required": {"text": ["STRING", {}], "seed": ["INT", {}]}}, "output": ["IMAGE"]},
                "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true}})"
             )},
        });
    return arrangement;
}

constexpr const char* kText = R"({
    "1": {"class_type": "Text", "inputs": {"text": "a", "seed": 1}},
    "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})";

json::object load(const std::string& image) {
    return parse(
        R"({"1": {"class_type": "LoadImage", "inputs": {"image": )" + image +
        R"(}}, "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})"
    );
}

class Admission : public testing::TestWithParam<Manner> {
protected:
    explicit Admission(Arrangement setup = with_workers()) : api(std::move(setup)) {}

    Submission submission(json::object workflow) const {
        Submission made{.spec = {}, .workflow = std::move(workflow)};
        made.manner = GetParam();
        made.spec.reuse = true;
        return made;
    }
    Decision<Admitted> admit(Submission submission) {
        return loop_.run(admission::admit(api.services, std::move(submission)));
    }
    Decision<Admitted> admit(json::object workflow) { return admit(submission(workflow)); }

    TestApi api;

private:
    net::test::Loop loop_;
};

INSTANTIATE_TEST_SUITE_P(
    Of,
    Admission,
    testing::Values(Manner::strict, Manner::comfyui),
    [](const auto& info) { return info.param == Manner::strict ? "strict" : "comfyui"; }
);

TEST_P(Admission, TakesTheCatalogueOnce) {
    int taken = 0;
    api.services.catalogue = [&taken, now = api.services.catalogue()] {
        ++taken;
        return now;
    };
    ASSERT_TRUE(admit(parse(kText)));
    EXPECT_EQ(taken, 1);
}

TEST_P(Admission, MakesTheSameJobInEveryManner) {
    const auto admitted = admit(parse(kText));
    ASSERT_TRUE(admitted) << admitted.error().error.message;
    const jobs::Spec& spec = admitted->spec;
    EXPECT_EQ(spec.requirement.encoded(), "Save\nText");
    EXPECT_EQ(spec.node_count, 2);
    EXPECT_EQ(spec.reuse_key.size(), 64U);
    EXPECT_TRUE(spec.targets.empty());
    Submission other = submission(parse(kText));
    other.manner = GetParam() == Manner::strict ? Manner::comfyui : Manner::strict;
    const auto likewise = admit(std::move(other));
    ASSERT_TRUE(likewise);
    EXPECT_EQ(likewise->spec.requirement, spec.requirement);
    EXPECT_EQ(likewise->spec.reuse_key, spec.reuse_key);
    EXPECT_EQ(likewise->spec.workflow, spec.workflow);
}

TEST_P(Admission, RefusesReferencesThatLeadNowhere) {
    const std::string nobodys = AssetId::make(api.clock.now()).to_string();
    for (const std::string& info :
         {R"({"id": ")" + nobodys + "\"}",
          std::string(R"({"id": "no id"})"),
          std::string(R"({"hash": "no hash"})"),
          std::string("7")}) {
        const auto refused = admit(load(R"({"__type": "core/ASSET", "info": )" + info + "}"));
        ASSERT_FALSE(refused) << info;
        EXPECT_EQ(refused.error().why, Refusal::Why::unavailable) << info;
        EXPECT_EQ(refused.error().error.code, Code::missing_asset) << info;
        ASSERT_EQ(refused.error().issues.size(), 1U) << info;
        EXPECT_EQ(refused.error().issues[0].node_id, "1") << info;
    }
}

TEST_P(Admission, CredentialsAreForTheWorkerAlone) {
    Submission with = submission(parse(kText));
    with.spec.extra_data = parse(
        R"({"api_key_comfy_org": "k", "auth_token_comfy_org": "t",
            "extra_pnginfo": {"workflow": null, "note": "n"}})"
    );
    const auto admitted = admit(std::move(with));
    ASSERT_TRUE(admitted);
    EXPECT_EQ(json::serialize(admitted->spec.extra_data), R"({"extra_pnginfo":{"note":"n"}})");
    EXPECT_EQ(admitted->spec.secret_extra_data.at("api_key_comfy_org"), "k");
    EXPECT_EQ(admitted->spec.secret_extra_data.at("auth_token_comfy_org"), "t");
}

TEST_P(Admission, TheOperatorsRulesComeFirst) {
    api.services.rules.security.denied_nodes = {"Text"};
    json::object graph = parse(kText);
    graph["3"] = parse(R"({"class_type": "Unknown", "inputs": {}})");
    const auto refused = admit(std::move(graph));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why, Refusal::Why::not_allowed);
}

// A file that a tenant uploaded is brought to any worker, also where one has another of the name.
TEST_P(Admission, AnUploadedFileBindsTheJobToNoWorker) {
    Pool disk(1);
    const auto folder = std::filesystem::temp_directory_path() /
                        ("comfyd-admit-" + AssetId::make(api.clock.now()).to_string());
    api.services.files = std::make_shared<admission::FileNames>(folder, disk);
    net::FormPart part;
    part.name = "file";
    part.filename = "cat.png";
    part.content_type = "image/png";
    part.data = "bytes";
    const json::object asset = parse(api.upload({part}).body);
    net::test::Loop loop;
    ASSERT_TRUE(loop.run(api.services.files->put(
        "local",
        "input/cat.png",
        {*AssetId::parse(std::string(asset.at("id").as_string())),
         std::string(asset.at("hash").as_string())},
        false
    )));
    const auto admitted = admit(load("\"cat.png\""));
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(admitted) << admitted.error().error.message;
    EXPECT_EQ(admitted->spec.requirement.encoded(), "LoadImage\nSave");
    EXPECT_NE(admitted->spec.workflow.find("core/ASSET"), std::string::npos);
}

class AdmissionWithoutWorkers : public Admission {
protected:
    AdmissionWithoutWorkers() : Admission(Arrangement()) {}
};
INSTANTIATE_TEST_SUITE_P(Of, AdmissionWithoutWorkers, testing::Values(Manner::comfyui));

TEST_P(AdmissionWithoutWorkers, TargetsAreKept) {
    Submission some = submission(parse(kText));
    some.targets = {"2"};
    const auto admitted = admit(std::move(some));
    ASSERT_TRUE(admitted);
    EXPECT_EQ(admitted->spec.targets, std::vector<std::string>{"2"});
    EXPECT_EQ(admitted->outputs, std::vector<std::string>{"2"});
}

// A model that an agent reads after workflows with it were taken.
class AdmissionOfModels : public Admission {
protected:
    AdmissionOfModels() : Admission(arrangement()) {}

    static models::KnownFiles& files() {
        static models::KnownFiles files;
        return files;
    }
    static Arrangement arrangement() {
        files().forget("w");
        Arrangement made;
        made.catalogue =
            std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>{
                {.worker = "w",
                 .classes = *workflow::NodeClasses::from_object_info(parse(R"({
                    "CheckpointLoaderSimple": {"input": {"required": {"ckpt_name": [["a.safetensors"], {}]}}, "output": ["MODEL", "CLIP", "VAE"]},
                    "Save": {"input": {"required": {"model": ["MODEL", {}], "text": ["STRING", {}]}}, "output": [], "output_node": true}})"
                 )),
                 .fetches_models = true}
            });
        made.admission.models.files = &files();
        made.admission.plan.model_files.changes = [] { return files().changes(); };
        return made;
    }
};
INSTANTIATE_TEST_SUITE_P(Of, AdmissionOfModels, testing::Values(Manner::strict, Manner::comfyui));

TEST_P(AdmissionOfModels, AKnownShapeIsJudgedAgainWhenMoreIsKnownOfItsFiles) {
    const auto workflow = [](const std::string& text) {
        return parse(
            R"({"1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a.safetensors"}},
                "2": {"class_type": "Save", "inputs": {"model": ["1", 0], "text": ")" +
            text + R"("}}})"
        );
    };
    for (const char* text : {"one", "two", "three"}) {
        ASSERT_TRUE(admit(workflow(text)));
    }
    const models::FileFacts lora{"lora", "sd15", "F16", {}, {}};
    files().set("w", {{"checkpoints/a.safetensors", lora}});
    const auto refused = admit(workflow("four"));
    ASSERT_FALSE(refused);
    const std::string words = GetParam() == Manner::strict
                                  ? refused.error().error.message
                                  : json::serialize(refused.error().node_errors);
    EXPECT_NE(words.find("of no use"), std::string::npos) << words;
    files().set("w", {{"checkpoints/a.safetensors", {"checkpoint", "sd15", "F16", {}, {}}}});
    EXPECT_TRUE(admit(workflow("five")));
}

}  // namespace
}  // namespace comfyd::api
