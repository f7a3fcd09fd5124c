#include "workflow/rules/stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/catalogue/nearest.hpp"
#include "workflow/rules/autofix.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::input;
using test::parsed;
using test::recorded_catalogue;
using test::text_to_image;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Validation look(const json::object& workflow, const ValidationOptions& options = {}) {
    return validate(workflow, recorded_catalogue(), options);
}

std::vector<std::string> codes(const StageReport& stage) {
    std::vector<std::string> found;
    for (const Issue& issue : stage.issues) {
        found.emplace_back(issue.code);
        EXPECT_FALSE(issue.message.empty());
        EXPECT_EQ(issue.stage, stage.stage);
    }
    return found;
}

const Issue& only(const Validation& validation, Stage stage) {
    const auto& issues = validation.at(stage).issues;
    EXPECT_EQ(issues.size(), 1U) << json::serialize(validation.to_json());
    static const Issue kNone;
    return issues.empty() ? kNone : issues.front();
}

TEST(Stages, AGoodWorkflowPassesAll) {
    const Validation validation = look(text_to_image());
    EXPECT_TRUE(validation.valid()) << json::serialize(validation.to_json());
    for (const StageReport& stage : validation.stages) {
        EXPECT_THAT(stage.issues, IsEmpty()) << to_string(stage.stage);
        EXPECT_EQ(stage.skipped, "");
    }
    ASSERT_TRUE(validation.plan);
    EXPECT_EQ(validation.to_json().at("stages").as_array().size(), 5U);
}

TEST(Stages, SyntaxFindsAllThatIsNoNode) {
    const Validation validation = look(parsed(R"({
        "1": 7, "2": {}, "3": {"class_type": "SaveImage", "inputs": []},
        "4": {"class_type": "KSamplerr", "inputs": {}}, "5": {"class_type": "SaveImag"}
    })"));
    EXPECT_THAT(
        codes(validation.at(Stage::syntax)),
        ElementsAre(
            "SCHEMA_VALIDATION_ERROR",
            "SCHEMA_VALIDATION_ERROR",
            "SCHEMA_VALIDATION_ERROR",
            "UNKNOWN_NODE_TYPE",
            "UNKNOWN_NODE_TYPE"
        )
    );
    EXPECT_EQ(validation.at(Stage::syntax).issues[3].suggestion, "KSampler");
    EXPECT_EQ(validation.at(Stage::syntax).issues[4].suggestion, "SaveImage");
    EXPECT_EQ(validation.at(Stage::resource).skipped, "the workflow has errors");
}

TEST(Stages, TheRestIsJudgedThoughANodeIsUnknown) {
    json::object workflow = text_to_image();
    workflow.at("6").as_object()["class_type"] = "CLIPTextEncod";
    input(workflow, "3", "steps") = 0;
    input(workflow, "4", "ckpt_name") = "nothing.safetensors";
    const Validation validation = look(workflow);
    EXPECT_THAT(codes(validation.at(Stage::syntax)), ElementsAre("UNKNOWN_NODE_TYPE"));
    EXPECT_THAT(
        codes(validation.at(Stage::semantic)),
        testing::UnorderedElementsAre("VALUE_OUT_OF_RANGE", "VALUE_NOT_IN_LIST")
    );
}

TEST(Stages, OtherFormatsAndEmptyOnesSayWhatToDo) {
    const Validation editor = look(parsed(R"({"nodes": [], "links": []})"));
    EXPECT_EQ(only(editor, Stage::syntax).code, "SCHEMA_VALIDATION_ERROR");
    EXPECT_THAT(only(editor, Stage::syntax).suggestion, HasSubstr("API"));
    EXPECT_EQ(editor.at(Stage::semantic).skipped, "the workflow cannot be read");
    EXPECT_EQ(only(look({}), Stage::syntax).code, "SCHEMA_VALIDATION_ERROR");
}

TEST(Stages, ValuesAreExplained) {
    json::object workflow = text_to_image();
    input(workflow, "3", "sampler_name") = "eulr";
    const Validation wrong = look(workflow);
    const Issue& choice = only(wrong, Stage::semantic);
    EXPECT_EQ(choice.code, "VALUE_NOT_IN_LIST");
    EXPECT_EQ(choice.reason, "value_not_in_list");
    EXPECT_EQ(choice.node_id, "3");
    EXPECT_EQ(choice.class_type, "KSampler");
    EXPECT_EQ(choice.input, "sampler_name");
    EXPECT_EQ(choice.got, "eulr");
    EXPECT_EQ(choice.suggestion, "euler");
    EXPECT_TRUE(choice.expected.is_array());

    workflow = text_to_image();
    input(workflow, "4", "ckpt_name") = "v1-5-prunned.safetensors";
    EXPECT_EQ(only(look(workflow), Stage::semantic).suggestion, "sd15/v1-5-pruned.safetensors");

    workflow = text_to_image();
    input(workflow, "3", "steps") = 100'000;
    const Validation large = look(workflow);
    const Issue& range = only(large, Stage::semantic);
    EXPECT_EQ(range.code, "VALUE_OUT_OF_RANGE");
    EXPECT_EQ(range.suggestion, "10000");
    EXPECT_EQ(range.expected.at("max"), 10'000);
    EXPECT_EQ(range.got, 100'000);

    workflow = text_to_image();
    input(workflow, "3", "steps") = "many";
    EXPECT_EQ(only(look(workflow), Stage::semantic).code, "INVALID_INPUT_VALUE");
}

TEST(Stages, LinksAreExplained) {
    json::object workflow = text_to_image();
    input(workflow, "8", "samples") = json::array{"4", 0};
    const Validation mismatch = look(workflow);
    const Issue& type = only(mismatch, Stage::semantic);
    EXPECT_EQ(type.code, "TYPE_MISMATCH");
    EXPECT_EQ(type.expected, "LATENT");
    EXPECT_EQ(type.got, "MODEL");

    workflow = text_to_image();
    input(workflow, "8", "samples") = json::array{"33", 0};
    const Validation nowhere = look(workflow);
    EXPECT_THAT(codes(nowhere.at(Stage::semantic)), Contains("BAD_LINK"));
    EXPECT_THAT(nowhere.at(Stage::semantic).issues.front().message, HasSubstr("33"));
    EXPECT_EQ(nowhere.at(Stage::semantic).issues.front().input, "samples");

    workflow = text_to_image();
    input(workflow, "8", "samples") = json::array{"3", 4};
    EXPECT_THAT(codes(look(workflow).at(Stage::semantic)), Contains("BAD_LINK"));

    workflow = text_to_image();
    input(workflow, "3", "latent_image") = json::array{"3", 0};
    EXPECT_THAT(codes(look(workflow).at(Stage::semantic)), Contains("CIRCULAR_DEPENDENCY"));
}

TEST(Stages, MissingInputsAndOutputs) {
    json::object workflow = text_to_image();
    workflow.at("3").at("inputs").as_object().erase("steps");
    input(workflow, "3", "stesp") = 20;
    const Validation missing = look(workflow);
    const Issue& issue = only(missing, Stage::semantic);
    EXPECT_EQ(issue.code, "MISSING_REQUIRED_INPUT");
    EXPECT_EQ(issue.input, "steps");
    EXPECT_EQ(issue.expected, "INT");
    EXPECT_EQ(issue.details.at("given_as"), "stesp");
    workflow = text_to_image();
    workflow.erase("9");
    EXPECT_EQ(only(look(workflow), Stage::semantic).code, "NO_OUTPUT_NODE");
}

TEST(Stages, WhatComfyUIWouldRunIsNoError) {
    json::object workflow = text_to_image();
    json::object broken = workflow.at("9").as_object();
    broken.at("inputs").as_object()["images"] = json::array{"4", 0};
    workflow["10"] = std::move(broken);
    const Validation validation = look(workflow);
    EXPECT_TRUE(validation.valid());
    EXPECT_EQ(only(validation, Stage::semantic).severity, Severity::warning);
}

TEST(Stages, AssetsAreFilesThatWillBeThere) {
    json::object workflow = text_to_image();
    workflow["20"] = parsed(R"({"class_type": "LoadImage", "inputs": {"image": {
        "__type": "core/ASSET", "info": {"hash": "blake3:00"}}}})");
    workflow["21"] = parsed(R"({"class_type": "PreviewImage", "inputs": {"images": ["20", 0]}})");
    EXPECT_TRUE(look(workflow).valid()) << json::serialize(look(workflow).to_json());
}

TEST(Stages, WithoutClassesOnlyTheStructureIsJudged) {
    const Catalogue nothing({});
    EXPECT_TRUE(validate(parsed(R"({"1": {"class_type": "X", "inputs": {}}})"), nothing).valid());
    const Validation bad =
        validate(parsed(R"({"1": {"class_type": "X", "inputs": {"a": ["9", 0]}}})"), nothing);
    EXPECT_EQ(only(bad, Stage::semantic).code, "BAD_LINK");
}

TEST(Stages, ResourcesAreCompared) {
    ValidationOptions options;
    options.gpu_memory_mb = 2'000;
    const Validation validation = look(text_to_image(), options);
    EXPECT_TRUE(validation.valid());
    EXPECT_EQ(only(validation, Stage::resource).code, "INSUFFICIENT_VRAM");
    EXPECT_EQ(only(validation, Stage::resource).severity, Severity::warning);
}

TEST(Stages, NoWorkerHasItAll) {
    const auto classes = [](const char* file) {
        return *NodeClasses::from_object_info(*json::parse(
            std::string(R"({"Load": {"input": {"required": {"name": [[")") + file +
            R"("]]}}, "output": ["IMAGE"]},
            "Save": {"input": {"required": {"a": ["IMAGE"], "b": ["IMAGE"]}}, "output": [],
                     "output_node": true}})"
        ));
    };
    const Catalogue fleet({{"one", classes("a.pt")}, {"two", classes("b.pt")}});
    const Validation validation = validate(
        parsed(R"({"1": {"class_type": "Load", "inputs": {"name": "a.pt"}},
                   "2": {"class_type": "Load", "inputs": {"name": "b.pt"}},
                   "3": {"class_type": "Save", "inputs": {"a": ["1", 0], "b": ["2", 0]}}})"),
        fleet
    );
    EXPECT_FALSE(validation.valid());
    EXPECT_EQ(only(validation, Stage::resource).code, "NO_CAPABLE_WORKER");
}

TEST(Stages, AdviceIsGiven) {
    json::object workflow = text_to_image();
    workflow["11"] = json::value(workflow.at("6"));  // nobody needs it
    workflow["12"] = json::value(workflow.at("4"));
    input(workflow, "7", "clip") = json::array{"12", 1};
    input(workflow, "3", "steps") = 80;
    input(workflow, "5", "width") = 514;
    workflow["13"] =
        parsed(R"({"class_type": "VAEEncode", "inputs": {"pixels": ["8", 0], "vae": ["4", 2]}})");
    workflow["14"] =
        parsed(R"({"class_type": "VAEDecode", "inputs": {"samples": ["13", 0], "vae": ["4", 2]}})");
    input(workflow, "9", "images") = json::array{"14", 0};
    const Validation validation = look(workflow);
    EXPECT_TRUE(validation.valid()) << json::serialize(validation.to_json());
    EXPECT_THAT(
        codes(validation.at(Stage::optimization)),
        testing::UnorderedElementsAre(
            "UNUSED_NODE",
            "DUPLICATE_NODE",
            "REDUNDANT_ROUND_TRIP",
            "HIGH_STEP_COUNT",
            "SIZE_IS_ROUNDED"
        )
    );
}

TEST(Stages, LargeOnesAreAnsweredShortly) {
    json::object workflow;
    for (int i = 0; i < 10'000; ++i) {
        workflow[std::to_string(i)] = json::object{
            {"class_type", "KSampler" + std::to_string(i)}, {"inputs", json::object()}
        };
    }
    const Validation validation = look(workflow);
    EXPECT_FALSE(validation.valid());
    EXPECT_LE(validation.at(Stage::syntax).issues.size(), kIssuesMax);
    workflow["one more"] = nullptr;
    EXPECT_EQ(only(look(workflow), Stage::syntax).code, "TOO_MANY_NODES");
}

TEST(Stages, AChainOfAllNodesIsJudged) {
    json::object workflow;
    workflow["0"] = parsed(R"({"class_type": "EmptyImage",
        "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 0}})");
    for (int i = 1; i < 9'999; ++i) {
        workflow[std::to_string(i)] = json::object{
            {"class_type", "ImageInvert"},
            {"inputs", json::object{{"image", json::array{std::to_string(i - 1), 0}}}}
        };
    }
    workflow["save"] = parsed(
        R"({"class_type": "SaveImage", "inputs": {"images": ["9998", 0], "filename_prefix": "x"}})"
    );
    const Validation deep = look(workflow);
    EXPECT_EQ(only(deep, Stage::security).code, "TOO_DEEP");
    ValidationOptions options;
    options.security.depth_max = 10'000;
    const Validation allowed = look(workflow, options);
    EXPECT_TRUE(allowed.valid());
    EXPECT_EQ(allowed.plan->stages.size(), 10'000U);
}

TEST(AutoFix, SlipsArePutRightAndTold) {
    json::object workflow = text_to_image();
    input(workflow, "3", "sampler_name") = "Eulre";
    input(workflow, "3", "steps") = 20'000;
    input(workflow, "3", "cfg") = -1;
    input(workflow, "5", "width") = "512.0";
    workflow.at("3").at("inputs").as_object().erase("denoise");
    const Fixed fixed = validate_and_fix(workflow, recorded_catalogue());
    EXPECT_TRUE(fixed.validation.valid()) << json::serialize(fixed.validation.to_json());
    EXPECT_EQ(fixed.fixes.size(), 5U);
    EXPECT_EQ(input(workflow, "3", "sampler_name"), "euler");
    EXPECT_EQ(input(workflow, "3", "steps"), 10'000);
    EXPECT_EQ(input(workflow, "3", "cfg"), 0.0);
    EXPECT_EQ(input(workflow, "3", "denoise"), 1.0);
    EXPECT_EQ(input(workflow, "5", "width"), 512);
    for (const Fix& fix : fixed.fixes) {
        EXPECT_EQ(fix.to_json().at("event"), "execution.warning");
        EXPECT_THAT(fix.message, HasSubstr("is now"));
    }
}

TEST(AutoFix, OtherFilesAndOtherNodesAreNotChosen) {
    json::object workflow = text_to_image();
    input(workflow, "4", "ckpt_name") = "sd_xl_base_1.1.safetensors";
    workflow.at("8").as_object()["class_type"] = "VAEDecod";
    const json::object before = workflow;
    const Fixed fixed = validate_and_fix(workflow, recorded_catalogue());
    EXPECT_FALSE(fixed.validation.valid());
    EXPECT_THAT(fixed.fixes, IsEmpty());
    EXPECT_EQ(workflow, before);
    // The same file, but for how its name is written.
    workflow = text_to_image();
    input(workflow, "4", "ckpt_name") = "SD15\\V1-5-pruned.safetensors";
    EXPECT_TRUE(validate_and_fix(workflow, recorded_catalogue()).validation.valid());
    EXPECT_EQ(input(workflow, "4", "ckpt_name"), "sd15/v1-5-pruned.safetensors");
}

TEST(AutoFix, AnInputUnderAWrongNameIsNotReplacedByItsDefault) {
    json::object workflow = text_to_image();
    workflow.at("3").at("inputs").as_object().erase("steps");
    input(workflow, "3", "stesp") = 20;
    EXPECT_THAT(validate_and_fix(workflow, recorded_catalogue()).fixes, IsEmpty());
}

TEST(NearestName, FindsSlipsAndSaysWhenItIsNotSure) {
    Nearest nearest;
    nearest.seek("dpmpp_2m");
    for (const char* name : {"euler", "dpmpp_2m_sde", "dpmpp_3m", "DPMPP_2M"}) {
        nearest.consider(name);
    }
    EXPECT_EQ(nearest.best(), "DPMPP_2M");
    EXPECT_EQ(nearest.distance(), 0U);
    nearest.seek("abcd");
    nearest.consider("abcx");
    nearest.consider("abcy");
    EXPECT_TRUE(nearest.is_tied());
    nearest.seek("abcd");
    nearest.consider("something else");
    EXPECT_EQ(nearest.best(), "");
    nearest.seek(std::string(1'000, 'a'));
    nearest.consider(std::string(1'000, 'a'));
    EXPECT_EQ(nearest.best(), "");
}

}  // namespace
}  // namespace comfyd::workflow
