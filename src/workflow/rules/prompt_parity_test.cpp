// Every recorded answer of a real server's POST /prompt, judged again. The differences that are
// meant are listed in kDifferences, each with its reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <vector>

#include "workflow/catalogue/node_replacement.hpp"
#include "workflow/catalogue/test_catalogue.hpp"
#include "workflow/rules/prompt_request.hpp"

namespace comfyd::workflow {
namespace {

enum class Difference {
    accepted_instead_of_500,
    kept_inputs,
    kept_number_as_text,
    received_number_as_text,
    message,
    repaired,
};

struct Listed {
    std::string_view name;
    Difference difference;
    std::string_view reason;
};
constexpr Listed kDifferences[] = {
    {"046-ok-float-nan-string",
     Difference::kept_number_as_text,
     "JSON has no NaN; the text means the same to the worker"},
    {"047-ok-float-nan-literal",
     Difference::kept_number_as_text,
     "JSON has no NaN; the text means the same to the worker"},
    {"100-ok-node-replacement-conditioning-average",
     Difference::kept_inputs,
     "the server empties the inputs of a renamed class that has no mapping, so it can never run"},
    {"172-bad-node-replacement-without-meta",
     Difference::accepted_instead_of_500,
     "the server fails on a node without _meta, which is optional everywhere else"},
    {"184-bad-int-nan", Difference::received_number_as_text, "JSON has no NaN"},
    {"185-bad-int-infinity", Difference::received_number_as_text, "JSON has no infinity"},
    {"186-bad-int-1e400", Difference::received_number_as_text, "JSON has no infinity"},
    {"189-bad-int-huge",
     Difference::message,
     "numbers beyond 64 bits are kept with 53 bits, so not all digits can be shown"},
    {"196-bad-float-inf", Difference::received_number_as_text, "JSON has no infinity"},
    {"197-bad-float-minus-inf", Difference::received_number_as_text, "JSON has no infinity"},
    {"280-ok-poison-unknown-input-links-to-missing-node",
     Difference::repaired,
     "as it is, the prompt would end the execution thread of the worker that gets it"},
};

bool differs(std::string_view name, Difference difference) {
    return std::ranges::any_of(kDifferences, [&](const Listed& listed) {
        return listed.name == name && listed.difference == difference;
    });
}

// ComfyUI's own checks of the classes that the cases use.
std::optional<OwnRefusal> check_image(
    const json::object& inputs, const NodeDefinition& definition
) {
    const json::value* image = inputs.if_contains("image");
    if (image == nullptr || image->is_array()) {
        return std::nullopt;
    }
    if (!image->is_string()) {
        return OwnRefusal{
            "'" + std::string(python_type(*image)) + "' object has no attribute 'endswith'",
            "AttributeError"
        };
    }
    std::string name = text_of(image->get_string());
    for (const std::string_view suffix : {" [input]", " [output]", " [temp]"}) {
        if (name.ends_with(suffix)) {
            name.resize(name.size() - suffix.size());
        }
    }
    const bool exists = name == "set/pic_0.png" ||
                        definition.find_input("image", inputs)->offers(json::value(name));
    return exists
               ? std::nullopt
               : std::optional(OwnRefusal{"Invalid image file: " + text_of(image->get_string())});
}

void add_test_pack_checks(TestClasses& classes) {
    using Received = std::map<std::string, std::string>;
    classes.checks["TestCustomValidation1"] = {
        .inputs = {"input1", "input2"},
        .check = [](const json::object& inputs, const Received&) -> std::optional<OwnRefusal> {
            if (inputs.at("input1").is_string()) {
                return OwnRefusal{"Invalid type of input1: <class 'str'>"};
            }
            return std::nullopt;
        }
    };
    const auto check_type = [](std::string_view suffix) {
        return
            [suffix](const json::object&, const Received& received) -> std::optional<OwnRefusal> {
                const std::string type = received.at("input1");
                if (type != "IMAGE" && type != "FLOAT") {
                    return OwnRefusal{"Invalid type of input1: " + type + std::string(suffix)};
                }
                return std::nullopt;
            };
    };
    classes.checks["TestCustomValidation2"] = {
        .inputs = {"input1", "input2"}, .link_types = true, .check = check_type("")
    };
    classes.checks["TestCustomValidation3"] = {
        .link_types = true, .check = check_type(" (expected IMAGE,FLOAT)")
    };
    classes.checks["TestCustomValidation5"] = {
        .all_inputs = true,
        .check = [](const json::object& inputs, const Received&) -> std::optional<OwnRefusal> {
            for (const char* name : {"input1", "input2"}) {
                if (!inputs.contains(name)) {
                    return OwnRefusal{"'" + std::string(name) + "'", "KeyError"};
                }
                if (inputs.at(name) == 7.0) {
                    return OwnRefusal{"7s are not allowed. I've never liked 7s."};
                }
            }
            return std::nullopt;
        }
    };
    classes.checks["TestAsyncValidation"] = {
        .inputs = {"value", "threshold"},
        .check = [](const json::object& inputs, const Received&) -> std::optional<OwnRefusal> {
            const double value = inputs.at("value").as_double();
            const double threshold = inputs.at("threshold").as_double();
            if (value <= threshold) {
                return std::nullopt;
            }
            return OwnRefusal{
                "Value " + python_str(value) + " exceeds threshold " + python_str(threshold)
            };
        }
    };
}

const TestClasses& recorded_classes() {
    static const TestClasses* const made = [] {
        auto* classes = new TestClasses(read_test_data("comfyui/object_info.facts.json"));
        classes->add(read_test_data("comfyui/object_info.testing-pack.facts.json"));
        for (const char* name : {"LoadImage", "LoadImageMask"}) {
            const NodeDefinition* definition = classes->find(name);
            classes->checks[name] = {
                .inputs = {"image"},
                .check =
                    [definition](const json::object& inputs, const auto&) {
                        return check_image(inputs, *definition);
                    }
            };
        }
        classes->checks["CustomCombo"] = {.inputs = {"choice"}};
        add_test_pack_checks(*classes);
        return classes;
    }();
    return *made;
}

const json::object& recorded_replacements() {
    static const json::object* const made = [] {
        const json::object answer =
            *json::parse_object(read_test_data("comfyui/http/node_replacements.json"));
        return new json::object(answer.at("response").as_object());
    }();
    return *made;
}

struct Answer {
    int status = 400;
    json::object error;
    json::object node_errors;
    std::vector<std::string> outputs;
    PromptRequest request;
    std::vector<std::string> repairs;
};

Answer answer(std::string_view body) {
    Answer made;
    auto read = read_prompt_body(body);
    if (!read) {
        made.error = std::move(read.error());
        return made;
    }
    auto request = parse_prompt_request(std::move(*read));
    if (!request) {
        made.error = std::move(request.error());
        return made;
    }
    made.request = std::move(*request);
    apply_replacements(made.request.prompt, recorded_replacements(), recorded_classes());
    PromptOptions options;
    options.targets = made.request.targets ? &*made.request.targets : nullptr;
    PromptVerdict verdict = judge_prompt(made.request.prompt, recorded_classes(), options);
    made.status = verdict.accepted ? 200 : 400;
    made.error = std::move(verdict.error);
    made.node_errors = std::move(verdict.node_errors);
    made.outputs = std::move(verdict.outputs_to_execute);
    made.repairs = std::move(verdict.repairs);
    std::ranges::sort(made.outputs);
    return made;
}

std::string body_of(const json::object& request) {
    if (const json::value* text = json::find(request, "body_text")) {
        return text_of(text->as_string());
    }
    if (const json::value* hex = json::find(request, "body_hex")) {
        const std::string digits = text_of(hex->as_string());
        std::string bytes;
        for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
            bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
        }
        return bytes;
    }
    return json::serialize(request.at("body"));
}

void sort_array(json::value& array) {
    std::vector<json::value> items(array.as_array().begin(), array.as_array().end());
    std::ranges::sort(items, {}, [](const json::value& item) {
        return json::serialize_canonical(item);
    });
    array = json::array(items.begin(), items.end());
}

std::multiset<std::string> lines_of(const json::value& text) {
    std::multiset<std::string> lines;
    std::string all = text_of(text.as_string());
    for (std::size_t at = 0; at <= all.size();) {
        const auto end = std::min(all.find('\n', at), all.size());
        lines.insert(all.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

// The catalogues of the tests hold no prose, and a traceback is nobody's business.
void normalise(json::object& node_errors, bool ordered, std::string_view name) {
    for (auto& node : node_errors) {
        sort_array(node.value().at("dependent_outputs"));
        for (json::value& error : node.value().at("errors").as_array()) {
            json::object& extra = error.at("extra_info").as_object();
            extra.erase("traceback");
            if (differs(name, Difference::received_number_as_text)) {
                extra.erase("received_value");
            }
            if (differs(name, Difference::message)) {
                error.as_object().erase("message");
            }
            json::value* config = extra.if_contains("input_config");
            if (config != nullptr && config->is_array()) {
                json::object& options = config->get_array().at(1).as_object();
                options.erase("tooltip");
            }
        }
        if (!ordered) {
            sort_array(node.value().at("errors"));
        }
    }
}

class PromptParity : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const std::string text = read_test_data("comfyui/validation/" + GetParam() + ".json");
        auto read = read_prompt_body(text);  // the recordings hold NaN
        ASSERT_TRUE(read);
        recorded_ = read->as_object();
    }

    void expect_refusal(Answer& ours) {
        json::object response = recorded_.at("response").as_object();
        json::object& error = response.at("error").as_object();
        const bool ordered = recorded_.at("order_stable").as_bool();
        if (ordered) {
            EXPECT_EQ(ours.error, error);
        } else {
            EXPECT_EQ(lines_of(ours.error.at("details")), lines_of(error.at("details")));
            ours.error.erase("details");
            error.erase("details");
            EXPECT_EQ(ours.error, error);
        }
    }

    void expect_node_errors(Answer& ours) {
        json::object theirs = recorded_.at("response").at("node_errors").as_object();
        const bool ordered = recorded_.at("order_stable").as_bool();
        normalise(theirs, ordered, GetParam());
        normalise(ours.node_errors, ordered, GetParam());
        EXPECT_EQ(ours.node_errors, theirs);
    }

    void expect_kept(Answer& ours) {
        const json::object& kept = recorded_.at("kept").as_object();
        json::object prompt = kept.at("prompt").as_object();
        if (differs(GetParam(), Difference::kept_number_as_text)) {
            prompt.at("1").at("inputs").as_object()["value"] = "nan";
        }
        if (differs(GetParam(), Difference::kept_inputs)) {
            prompt.at("11").as_object()["inputs"] = ours.request.prompt.at("11").at("inputs");
        }
        if (differs(GetParam(), Difference::repaired)) {
            prompt.at("1").at("inputs").as_object().erase("nonsense");
            EXPECT_EQ(ours.repairs.size(), 1U);
        } else {
            EXPECT_TRUE(ours.repairs.empty());
        }
        EXPECT_EQ(ours.request.prompt, prompt);
        EXPECT_EQ(
            json::value(json::array(ours.outputs.begin(), ours.outputs.end())),
            kept.at("outputs_to_execute")
        );
        if (ours.request.number) {
            EXPECT_EQ(json::value(*ours.request.number), kept.at("number"));
        }
        EXPECT_EQ(
            ours.request.front, kept.at("number").to_number<double>() < 0 && !ours.request.number
        );
    }

    json::object recorded_;
};

TEST_P(PromptParity, AnswersLikeTheServer) {
    Answer ours = answer(body_of(recorded_.at("request").as_object()));
    const auto status = recorded_.at("status").as_int64();
    if (status == 500) {
        const bool accepted = differs(GetParam(), Difference::accepted_instead_of_500);
        EXPECT_EQ(ours.status, accepted ? 200 : 400);
        for (const char* field : {"type", "message", "details", "extra_info"}) {
            EXPECT_EQ(ours.error.contains(field), !accepted) << field;
        }
        return;
    }
    ASSERT_EQ(ours.status, status)
        << json::serialize(ours.error) << json::serialize(ours.node_errors);
    if (status == 200) {
        EXPECT_TRUE(ours.error.empty());
        expect_kept(ours);
    } else {
        expect_refusal(ours);
    }
    expect_node_errors(ours);
}

std::vector<std::string> case_names() {
    std::vector<std::string> names;
    const std::filesystem::path folder = std::string(COMFYD_TEST_DATA) + "/comfyui/validation";
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        names.push_back(file.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    PromptParity,
    testing::ValuesIn(case_names()),
    [](const testing::TestParamInfo<std::string>& about) {
        std::string name = about.param;
        std::ranges::replace_if(
            name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_'
        );
        return name;
    }
);

TEST(PromptParityCases, AreAllThere) {
    EXPECT_EQ(case_names().size(), 280U);
    std::set<std::string> names;
    for (const std::string& name : case_names()) {
        names.insert(name);
    }
    for (const Listed& listed : kDifferences) {
        EXPECT_TRUE(names.contains(std::string(listed.name))) << listed.name;
        EXPECT_FALSE(listed.reason.empty());
    }
}

}  // namespace
}  // namespace comfyd::workflow
