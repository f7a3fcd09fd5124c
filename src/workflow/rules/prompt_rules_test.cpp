#include "workflow/rules/prompt_rules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "workflow/catalogue/test_catalogue.hpp"

namespace comfyd::workflow {
namespace {

constexpr const char* kClasses = R"({
    "Make": {"input": {"required": {"size": ["INT", {"min": 1, "max": 64}]},
                       "optional": {"big": ["INT"], "real": ["FLOAT"], "any": ["*"],
                                    "some": ["INT,FLOAT", {"min": 0}]}},
             "output": ["IMAGE", "MASK,LATENT", "*"], "output_node": false},
    "Loop": {"input": {"required": {"image": ["IMAGE"], "size": ["INT", {"min": 1}]}}, "output": ["IMAGE"]},
    "Pass": {"input": {"required": {"image": ["IMAGE"]}}, "output": ["IMAGE"]},
    "Latent": {"input": {"optional": {"latent": ["SAMPLES , LATENT"], "scheduler": [["a", "b"]],
                                      "kind": ["COMBO", {"options": ["x", "y"]}],
                                      "kinds": ["COMBO", {"options": ["x", "y"], "multiselect": true}]}},
               "output": [["a", "b"], ["b", "c"]], "output_node": true},
    "Load": {"input": {"required": {"file": [["one.png"], {"image_upload": true}]}},
             "output": ["IMAGE"]},
    "Custom": {"input": {"required": {"n": ["INT", {"max": 5}], "c": [["a"]], "image": ["IMAGE"]}},
               "output": [], "output_node": true, "python_module": "custom_nodes.pack"},
    "Save": {"input": {"required": {"images": ["IMAGE"]}, "hidden": {"prompt": "PROMPT"}},
             "output": [], "output_node": true},
    "Show": {"input": {"required": {"images": ["IMAGE"]}}, "output": ["IMAGE"], "output_node": true}})";

const TestClasses& classes() {
    static const TestClasses made(kClasses);
    return made;
}

json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

PromptVerdict judge(json::object& prompt, const PromptOptions& options = {}) {
    return judge_prompt(prompt, classes(), options);
}

PromptVerdict judge(std::string_view prompt, const PromptOptions& options = {}) {
    json::object parsed = parse(prompt);
    return judge(parsed, options);
}

std::string first_error(const PromptVerdict& verdict, std::string_view node) {
    const json::value* entry = json::find(verdict.node_errors, node);
    return entry == nullptr ? "none" : text_of(entry->at("errors").at(0).at("type").as_string());
}

json::object node(const char* class_type, json::object inputs) {
    json::object made;
    made["class_type"] = class_type;
    made["inputs"] = std::move(inputs);
    return made;
}

json::array link(std::size_t to, int slot = 0) {
    return json::array{std::to_string(to), slot};
}

TEST(PromptRules, AChainMayBeAsLongAsThePrompt) {
    json::object prompt;
    prompt["0"] = node("Make", {{"size", "8"}});
    for (std::size_t i = 1; i + 1 < kPromptNodesMax; ++i) {
        prompt[std::to_string(i)] = node("Pass", {{"image", link(i - 1)}});
    }
    prompt["end"] = node("Save", {{"images", link(kPromptNodesMax - 2)}});
    const PromptVerdict verdict = judge(prompt);
    EXPECT_TRUE(verdict.accepted);
    EXPECT_EQ(verdict.outputs_to_execute, std::vector<std::string>{"end"});
    EXPECT_EQ(prompt.at("0").at("inputs").at("size"), 8);

    prompt["0"] = node("Make", {{"size", 0}});
    const PromptVerdict refused = judge(prompt);
    EXPECT_FALSE(refused.accepted);
    EXPECT_EQ(refused.node_errors.size(), 1U);
    EXPECT_EQ(first_error(refused, "0"), "value_smaller_than_min");

    prompt["one more"] = node("Make", {{"size", 1}});
    EXPECT_EQ(judge(prompt).error.at("type"), "invalid_prompt");
}

TEST(PromptRules, ACycleMayBeAsLongAsThePrompt) {
    constexpr std::size_t kLength = kPromptNodesMax - 1;
    json::object prompt;
    for (std::size_t i = 0; i < kLength; ++i) {
        prompt[std::to_string(i)] = node("Pass", {{"image", link((i + 1) % kLength)}});
    }
    prompt["end"] = node("Save", {{"images", link(0)}});
    const PromptVerdict verdict = judge(prompt);
    EXPECT_FALSE(verdict.accepted);
    EXPECT_EQ(verdict.node_errors.size(), kLength);
    EXPECT_EQ(first_error(verdict, "5000"), "dependency_cycle");
    EXPECT_LT(json::serialize(verdict.node_errors).size(), 10U << 20U);
}

TEST(PromptRules, ManyCyclesAreJudgedQuickly) {
    // Every node leads to the next one and back to all before it, by way of growing inputs.
    TestClasses many(R"({
        "Many": {"input": {"required": {"in": ["COMFY_AUTOGROW_V3", {"template": {
            "input": {"required": {"x": ["IMAGE"]}}, "prefix": "x", "min": 0, "max": 100}}]}},
            "output": ["IMAGE"]},
        "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output_node": true}})");
    json::object prompt;
    for (std::size_t i = 0; i < 5000; ++i) {
        json::object inputs;
        inputs["in.x0"] = link((i + 1) % 5000);
        for (std::size_t back = 1; back < 100; ++back) {
            inputs["in.x" + std::to_string(back)] = link((i * back) % (i + 1));
        }
        prompt[std::to_string(i)] = node("Many", std::move(inputs));
    }
    prompt["end"] = node("Save", {{"images", link(0)}});
    const PromptVerdict verdict = judge_prompt(prompt, many);
    EXPECT_FALSE(verdict.accepted);
    EXPECT_EQ(verdict.node_errors.size(), 5000U);
}

TEST(PromptRules, TheAnswerToManyErrorsIsBounded) {
    json::object prompt;
    prompt["bad"] = node("Make", {{"size", -1}});
    for (std::size_t i = 0; i + 1 < kPromptNodesMax; ++i) {
        prompt[std::to_string(i)] =
            node("Custom", {{"image", json::array{"bad", 0}}, {"n", 9}, {"c", "?"}});
    }
    const PromptVerdict verdict = judge(prompt);
    EXPECT_FALSE(verdict.accepted);
    EXPECT_EQ(verdict.node_errors.size(), kPromptNodesMax);
    EXPECT_LT(json::serialize(verdict.node_errors).size(), 10U << 20U);
    EXPECT_LT(verdict.error.at("details").as_string().size(), 2U << 20U);
}

TEST(PromptRules, OnlyThoseThatDependOnAnErrorAreNamed) {
    const PromptVerdict verdict = judge(R"({
        "1": {"class_type": "Make", "inputs": {"size": 0}},
        "2": {"class_type": "Make", "inputs": {"size": 99}},
        "3": {"class_type": "Save", "inputs": {"images": ["1", 0]}},
        "4": {"class_type": "Save", "inputs": {"images": ["2", 0]}}})");
    EXPECT_EQ(verdict.node_errors.at("1").at("dependent_outputs"), json::array{"3"});
    EXPECT_EQ(verdict.node_errors.at("2").at("dependent_outputs"), json::array{"4"});
}

TEST(PromptRules, AnOutputThatAnotherOutputNeedsIsToldOfOnce) {
    // A fuzzer's find: 2 tells of what is wrong with 1, which then fails as an output itself.
    for (const char* order : {"21", "12"}) {
        json::object prompt;
        for (const char id : std::string_view(order)) {
            prompt[std::string(1, id)] = node("Show", {{"images", link(1)}});
        }
        const PromptVerdict verdict = judge(prompt);
        EXPECT_FALSE(verdict.accepted);
        EXPECT_EQ(verdict.node_errors.at("1").at("errors").as_array().size(), 1U);
        EXPECT_EQ(verdict.node_errors.at("1").at("dependent_outputs").as_array().size(), 2U);
        EXPECT_NE(
            text_of(verdict.error.at("details").as_string()).find("cycle"), std::string::npos
        );
    }
}

TEST(PromptRules, LinksThatWouldEndAWorkersThreadAreDropped) {
    json::object prompt = parse(R"({
        "1": {"class_type": "Make", "inputs": {"size": 1, "unknown": ["77", 0], "odd": ["78", "x"],
                                               "also": ["5", 0], "note": "n"}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0], "prompt": ["79", 0]}},
        "5": {"class_type": "Pass", "inputs": {"image": ["80", 0]}},
        "6": {"class_type": "Pass", "inputs": {"image": ["81", 0]}}})");
    const PromptVerdict verdict = judge(prompt);
    ASSERT_TRUE(verdict.accepted);
    EXPECT_EQ(verdict.repairs.size(), 3U);
    // What is not followed stays: not a link, not reached.
    EXPECT_EQ(prompt, parse(R"({
        "1": {"class_type": "Make", "inputs": {"size": 1, "odd": ["78", "x"],
                                               "also": ["5", 0], "note": "n"}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}},
        "5": {"class_type": "Pass", "inputs": {}},
        "6": {"class_type": "Pass", "inputs": {"image": ["81", 0]}}})"));
}

TEST(PromptRules, ANodeWithoutInputsThatNothingNeedsGetsSome) {
    // ComfyUI accepts this as well, and then loses the thread that runs prompts.
    json::object prompt = parse(R"({
        "1": {"class_type": "Make", "inputs": {"size": 1}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}},
        "3": {"class_type": "Pass"},
        "4": {"class_type": "Save", "inputs": {"images": ["3", 0]}}})");
    const PromptVerdict verdict = judge(prompt);
    EXPECT_TRUE(verdict.accepted);
    EXPECT_EQ(verdict.outputs_to_execute, std::vector<std::string>{"2"});
    EXPECT_EQ(first_error(verdict, "3"), "exception_during_inner_validation");
    for (const auto& node : prompt) {
        EXPECT_TRUE(node.value().at("inputs").is_object());
    }
}

TEST(PromptRules, ANodeOfACycleHasItsOwnErrorsToo) {
    const PromptVerdict verdict = judge(R"({
        "1": {"class_type": "Loop", "inputs": {"image": ["1", 0], "size": 0}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})");
    const json::array& errors = verdict.node_errors.at("1").at("errors").as_array();
    ASSERT_EQ(errors.size(), 2U);
    EXPECT_EQ(errors[0].at("type"), "dependency_cycle");
    EXPECT_EQ(errors[1].at("type"), "value_smaller_than_min");
}

TEST(PromptRules, NumbersThatJsonCannotSayBecomeText) {
    json::object prompt = parse(R"({
        "1": {"class_type": "Make", "inputs": {"size": 1, "real": "Infinity", "any": 0, "x": 0}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})");
    json::object& inputs = prompt.at("1").at("inputs").as_object();
    inputs["any"] = std::numeric_limits<double>::quiet_NaN();
    inputs["x"] = -std::numeric_limits<double>::infinity();
    ASSERT_TRUE(judge(prompt).accepted);
    EXPECT_EQ(inputs.at("real"), "inf");
    EXPECT_EQ(inputs.at("any"), "nan");
    EXPECT_EQ(inputs.at("x"), "-inf");
}

TEST(PromptRules, NumbersBeyond64BitsAreLeftToTheWorkerOrRefused) {
    const char* const text = R"({
        "1": {"class_type": "Make", "inputs": {"size": 1, "big": "123456789012345678901234567890"}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})";
    json::object prompt = parse(text);
    ASSERT_TRUE(judge(prompt).accepted);
    EXPECT_EQ(prompt.at("1").at("inputs").at("big"), "123456789012345678901234567890");
    PromptOptions plain;
    plain.plain_numbers = true;
    EXPECT_EQ(first_error(judge(text, plain), "1"), "invalid_input_type");
    EXPECT_EQ(
        first_error(
            judge(
                R"({"1": {"class_type": "Make", "inputs": {"size": 1, "real": "nan"}},
                    "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})",
                plain
            ),
            "1"
        ),
        "invalid_input_type"
    );
}

TEST(PromptRules, LimitsOfOtherTypesAreComparedAsPythonDoes) {
    const auto with = [](const char* value) {
        return first_error(
            judge(
                std::string(R"({"1": {"class_type": "Make", "inputs": {"size": 1, "some": )") +
                value + R"(}}, "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})"
            ),
            "1"
        );
    };
    EXPECT_EQ(with("0.5"), "none");
    EXPECT_EQ(with("true"), "none");
    EXPECT_EQ(with("-0.5"), "value_smaller_than_min");
    EXPECT_EQ(with("-1"), "value_smaller_than_min");
    EXPECT_EQ(with("\"5\""), "exception_during_inner_validation");
    EXPECT_EQ(with("null"), "exception_during_inner_validation");
}

std::string link_error(const char* input, int slot) {
    json::object prompt;
    prompt["1"] = node("Make", {{"size", 1}});
    prompt["2"] = node("Latent", {{input, link(1, slot)}});
    return first_error(judge(prompt), "2");
}

TEST(PromptRules, TypesMeetWhenOneIsCommon) {
    EXPECT_EQ(link_error("latent", 1), "none");  // MASK,LATENT to SAMPLES , LATENT
    EXPECT_EQ(link_error("latent", 0), "return_type_mismatch");
    EXPECT_EQ(link_error("latent", 2), "none");  // *
    EXPECT_EQ(link_error("scheduler", 2), "none");
    EXPECT_EQ(link_error("scheduler", 0), "return_type_mismatch");
    EXPECT_EQ(link_error("kind", 0), "return_type_mismatch");
}

TEST(PromptRules, AListOfChoicesIsAType) {
    const auto with = [](const char* input, int slot, bool own_checks_known) {
        json::object prompt;
        prompt["1"] = node("Latent", {});
        prompt["2"] = node("Latent", {{input, link(1, slot)}});
        PromptOptions options;
        options.own_checks_known = own_checks_known;
        return first_error(judge(prompt, options), "2");
    };
    EXPECT_EQ(with("scheduler", 0, true), "none");
    EXPECT_EQ(with("scheduler", 1, true), "return_type_mismatch");
    EXPECT_EQ(with("scheduler", 1, false), "none");
    EXPECT_EQ(with("kind", 0, true), "none");
    EXPECT_EQ(with("latent", 0, true), "return_type_mismatch");
}

TEST(PromptRules, SeveralChoicesMayBeMade) {
    const auto with = [](const char* input, const json::value& value) {
        json::object prompt;
        prompt["1"] = node("Latent", {{input, {{"__value__", value}}}});
        return judge(prompt);
    };
    EXPECT_TRUE(with("kinds", json::array{"x", "y"}).accepted);
    EXPECT_TRUE(with("kinds", json::array()).accepted);
    EXPECT_TRUE(with("kinds", "x").accepted);
    const PromptVerdict wrong = with("kinds", json::array{"x", "z", 4});
    EXPECT_EQ(
        wrong.node_errors.at("1").at("errors").at(0).at("details"),
        "kinds: 'z', 4 not in ['x', 'y']"
    );
    EXPECT_FALSE(with("kind", json::array{"x"}).accepted);
}

TEST(PromptRules, AFleetLeavesToTheWorkerWhatItCannotKnow) {
    const char* const prompt = R"({
        "1": {"class_type": "Load", "inputs": {"file": "two.png"}},
        "2": {"class_type": "Custom", "inputs": {"n": 9, "c": "z", "image": ["1", 0]}}})";
    EXPECT_FALSE(judge(prompt).accepted);
    PromptOptions fleet;
    fleet.own_checks_known = false;
    EXPECT_TRUE(judge(prompt, fleet).accepted);
    // Coercion, types and ComfyUI's own classes are still judged.
    EXPECT_FALSE(judge(
                     R"({"2": {"class_type": "Custom",
                         "inputs": {"n": "x", "c": "z", "image": null}}})",
                     fleet
    )
                     .accepted);
    EXPECT_FALSE(
        judge(R"({"1": {"class_type": "Latent", "inputs": {"kind": "z"}}})", fleet).accepted
    );
}

TEST(PromptRules, AClassMayCheckForItself) {
    TestClasses own(kClasses);
    std::optional<OwnRefusal> answer;
    own.checks["Load"] =
        {.inputs = {"file"}, .check = [&](const json::object& inputs, const auto&) {
             EXPECT_EQ(inputs.at("file"), "two.png");
             return answer;
         }};
    const auto judged = [&] {
        json::object prompt = parse(R"({"1": {"class_type": "Load", "inputs": {"file": "two.png"}},
                                 "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})");
        return judge_prompt(prompt, own);
    };
    EXPECT_TRUE(judged().accepted);
    answer = OwnRefusal{"Invalid image file: two.png"};
    EXPECT_EQ(first_error(judged(), "1"), "custom_validation_failed");
    EXPECT_EQ(
        judged().node_errors.at("1").at("errors").at(0).at("details"),
        "file - Invalid image file: two.png"
    );
    answer = OwnRefusal{"no", "ValueError"};
    EXPECT_EQ(first_error(judged(), "1"), "exception_during_inner_validation");
}

TEST(PromptRules, MalformedNodesAreNamed) {
    for (const char* prompt : {
             R"({"7": null})",
             R"({"7": []})",
             R"({"7": {"class_type": []}})",
             R"({"7": {"class_type": "Save", "inputs": null}})",
             R"({"7": {"class_type": "Save", "inputs": [1]}})",
         }) {
        const PromptVerdict verdict = judge(prompt);
        EXPECT_FALSE(verdict.accepted);
        EXPECT_EQ(verdict.error.at("type"), "invalid_prompt") << prompt;
        EXPECT_NE(text_of(verdict.error.at("message").as_string()).find("'7'"), std::string::npos);
    }
    EXPECT_EQ(judge(R"({"7": {"class_type": "Nope"}})").error.at("type"), "missing_node_type");
    EXPECT_EQ(judge("{}").error.at("type"), "prompt_no_outputs");
}

TEST(PromptRules, TargetsChooseAmongTheOutputs) {
    const std::vector<std::string> targets{"3", "1", "nothing"};
    PromptOptions options;
    options.targets = &targets;
    const PromptVerdict verdict = judge(
        R"({"1": {"class_type": "Make", "inputs": {"size": 1}},
            "2": {"class_type": "Save", "inputs": {}},
            "3": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})",
        options
    );
    EXPECT_TRUE(verdict.accepted);
    EXPECT_TRUE(verdict.node_errors.empty());
    EXPECT_EQ(verdict.outputs_to_execute, std::vector<std::string>{"3"});
}

TEST(PromptRules, SlotsAreIndexedAsInPython) {
    EXPECT_EQ(slot_index(0, 2), 0U);
    EXPECT_EQ(slot_index(-1, 2), 1U);
    EXPECT_EQ(slot_index(true, 2), 1U);
    EXPECT_EQ(slot_index(2, 2), std::nullopt);
    EXPECT_EQ(slot_index(-3, 2), std::nullopt);
    EXPECT_EQ(slot_index("0", 2), std::nullopt);
    EXPECT_EQ(slot_index(std::numeric_limits<std::int64_t>::min(), 2), std::nullopt);
}

}  // namespace
}  // namespace comfyd::workflow
